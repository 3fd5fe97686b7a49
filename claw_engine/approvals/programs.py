"""What kind of program a name stands for: pure tables, no file is looked at.

A program that runs whatever text, file or option it is given cannot be allowed "always": its rule
would allow everything. The tables err on the side of asking; they follow OpenClaw's wrapper and
shell lists and the well-known programs that can start others (editors, build tools, archivers…).
"""

from __future__ import annotations

import functools
import re
from enum import StrEnum

from claw_engine.approvals.wordlist import words


class Kind(StrEnum):
    """Why a program is special; PLAIN programs may be allowed by a rule."""

    PLAIN = "plain"
    WRAPPER = "wrapper"  # starts its arguments; we can look through the simple forms
    BLOCKED_WRAPPER = "blocked-wrapper"  # starts its arguments in a way we do not follow
    PRIVILEGE = "privilege"
    SHELL = "shell"
    MULTIPLEXER = "multiplexer"
    INTERPRETER = "interpreter"
    LAUNCHER = "launcher"  # has an option, a hook or a file format that starts programs
    BUILTIN = "builtin"  # part of the shell itself: there is no program to allow


WRAPPERS = frozenset(["env", "nice", "nohup", "stdbuf", "timeout"])
SHELLS = words(
    "sh bash dash ash zsh ksh mksh lksh pdksh yash rbash fish csh tcsh elvish nu xonsh cmd "
    "powershell pwsh sash posh oksh loksh es rc scsh oil osh ysh murex ion hush msh"
)
MULTIPLEXERS = words("busybox toybox coreutils sbase-box ubase-box uutils")
_BLOCKED = words(
    "chrt ionice setsid taskset xargs parallel chroot unshare nsenter setpriv setarch linux32 "
    "linux64 strace ltrace gdb lldb perf valgrind watch script scriptreplay time entr flock "
    "expect unbuffer tmux screen bwrap firejail fakeroot proot dbus-run-session dbus-launch "
    "xvfb-run start-stop-daemon run-parts systemd-run at batch crontab numactl cgexec prlimit "
    "choom catchsegv setlock chpst softlimit daemonize runcon cpulimit timelimit torsocks "
    "proxychains proxychains4 faketime eatmydata schroot arch-chroot systemd-nspawn lxc-attach "
    "byobu dtach abduco libtool wine ssh-agent ldd pexec sem rush watchexec nodemon hyperfine "
    "fakeroot-sysv fakeroot-tcp uclampset luit scriptlive systemd-cat "
    "systemd-inhibit systemd-socket-activate sotruss msgexec ssh-argv0 heaptrack gpg-agent "
    "agetty getty switch_root pivot_root sulogin rtcwake not pg_virtualenv iptables-apply "
    "ip6tables-apply dpkg-architecture kernel-install crun runc conmon jexec "
    "multitime openvt tmate sshpass vipw vigr rr uftrace trickle cgrun "
    "logsave distcc ccache sccache icecc torify tsocks jail daemon supervise "
    "runsv s6-setsid s6-envdir envdir setuidgid execlineb with-contenv dumb-init tini catatonit "
    "dropbear inotifyd incrontab atrun anacron fcrontab lxc-start lxc-execute apptainer "
    "singularity distrobox toolbox flatpak-spawn steam-run waypipe rsh rlogin "
    "pdsh clush mpirun mpiexec srun sbatch qsub memusage xtrace "
    "zellij ctty aa-exec genie grc runscript chronic ts ifne pee zrun lckdo mispipe direnv asdf "
    "mise rbenv pyenv nvm nsjail minijail0 bubblewrap sydbox landrun fakechroot box64 box86 fex "
    "bats incrond act psexec winexe cgroup-run rofi gtester xdotool setcap op socket varnishncsa "
    "x-terminal-emulator xterm uxterm lxterm koi8rxterm gnome-terminal konsole kitty alacritty "
    "wezterm foot urxvt rxvt st lxterminal xfce4-terminal mate-terminal terminator guake tilix "
    "qterminal terminology gxargs genv gnice gnohup gstdbuf gtimeout gchroot "
    "pipesz enosys coresched i386 x86_64 i486 i586 i686 uname26 ppc64 s390x systemd-notify "
    "systemd-dissect homectl userdbctl sops honcho foreman reflex modd watchmedo watchman "
    "multitail mbuffer vcsh devbox flox dbclient"
)
_PRIVILEGE = words(
    "sudo sudoedit doas su pkexec runuser machinectl capsh gosu su-exec sg newgrp login ksu gksu "
    "gksudo kdesu kdesudo beesu sux calife super please run-as pfexec rootsh sudosh"
)
_INTERPRETERS = words(
    "python pypy ipython perl raku ruby irb jruby node nodejs bun deno tsx ts-node npx bunx uvx "
    "php lua luajit tclsh wish awk gawk mawk nawk original-awk sed gsed r rscript julia ghci "
    "runghc groovy scala java jshell kotlin guile racket sbcl clisp ecl emacs osascript gjs qjs "
    "mujs erl elixir iex escript ocaml swift m4 bc dc octave gnuplot sqlite psql mysql mariadb "
    "mongosh redis-cli ld.so micropython hy pythonw jjs jrunscript dotnet clojure clj bb lein "
    "crystal nim zig v tcc root cling sage maxima r2 radare2 rizin fennel lfe chez scheme gosh "
    "mit-scheme gforth picolisp jconsole duckdb sqlcmd mongo influx cqlsh gdb-multiarch perlbug "
    "cpan perldoc perl5 rexx snobol4 swipl gprolog yap bpython ptpython xonsh hivex "
    "ocamlrun ocamlfind sml poly mosml rebol io factor pforth rakudo raku6 perl6 moar nqp parrot "
    "squeak pharo gst truffleruby mruby rbx ccl abcl mkcl gcl chibi-scheme csi csc bigloo gsi gsc "
    "janet wren duk quickjs hermes jsc d8 rhino jsshell txiki graalpy ironpython jython cython "
    "coconut pyston luvit luvi texlua tarantool goawk frawk mlr miller fx mono javaw slsh cobc "
    "byebug bundler facter exiftool scanmem crash jtag ginsh msfconsole tasksh tdbtool cowsay "
    "cowthink jupyter pyspark spark-shell spark-submit scala-cli amm jbang coursier flask "
    "django-admin gunicorn uvicorn celery "
    "rename prename file-rename exim exim4 swaks streamlink clickhouse clickhouse-local"
)
_LAUNCHERS = words(
    "find fd fdfind git hg svn bzr ssh scp sftp rsync mosh docker podman nerdctl kubectl helm "
    "make gmake bmake cmake ninja meson just task rake gradle mvn ant bazel cargo rustc go gcc "
    "g++ cc c++ clang ld npm pnpm yarn pip pipx uv poetry conda mamba gem bundle composer tar "
    "bsdtar cpio zip unzip 7z 7za vi vim view rvim nvim ex ed nano pico micro joe less more most "
    "man info pager nc ncat netcat socat telnet curl wget aria dpkg apt apt-get yum dnf rpm "
    "pacman apk snap flatpak nix nix-shell nix-env guix systemctl service journalctl openrc "
    "launchctl crond run-mailcap xdg-open open gtk-launch ip tc iptables ansible ansible-playbook "
    "terraform pulumi vagrant gpg openssl tcpdump tshark sort split csplit pr lp mail mutt rlwrap "
    "ctags pry puppet chef salt rg ag ack install-info ffmpeg-script latex pdflatex tex xelatex "
    "vimdiff ftp lftp smbclient nmap ssh-keygen logrotate busctl dbus-send bpftrace "
    "lualatex pandoc gs convert magick modprobe insmod mount umount chsh claw claw-tui openclaw "
    "fzf sk peco vimtutor nex sc groff troff nroff pic eqn grap soelim zsoelim refer tbl dvips "
    "xetex luatex pdftex latexmk ghostscript mogrify identify ffmpeg ffprobe mpv vlc mplayer feh "
    "batcat bat delta exa tig lazygit gh glab ranger mc nnn vifm lf yazi broot ncdu dialog "
    "whiptail w3m lynx links elinks browsh mutt neomutt alpine pine nail s-nail mailx irssi "
    "weechat minicom picocom cu tip kermit rz sz chronyc ntpdate finger tftp "
    "aria2c wget2 httpie http rclone restic borg borgmatic duplicity rsnapshot rdiff-backup "
    "unison syncthing etckeeper debootstrap dpkg-deb dpkg-source debuild dpkg-buildpackage "
    "rpmbuild makepkg emerge ebuild portage pkg pkg_add brew port easy_install virtualenv venv "
    "tox nox pytest py.test unittest coverage pre-commit mypy pylint black isort eslint "
    "prettier jest vitest mocha webpack vite rollup esbuild tsc gulp grunt lerna nx turbo pm2 "
    "forever serve http-server sphinx-build mkdocs jekyll hugo gatsby next nuxt ng react-scripts "
    "cmake3 ccmake ctest cpack scons waf b2 bjam premake xmake qmake autoconf automake autoreconf "
    "aclocal configure buck buck2 pants please redo tup sbt mill ghc stack cabal dune opam "
    "rebar3 mix dart flutter pub kotlinc javac swiftc rustup wasm-pack wasmtime wasmer buildah "
    "skopeo kaniko crictl ctr nerdctl docker-compose podman-compose kind minikube k3s k9s "
    "kustomize helmfile skaffold tilt nomad consul packer vault salt-call chef-client fabric fab "
    "invoke knife aws gcloud az doctl heroku fly firebase supabase systemd-resolve loginctl "
    "hostnamectl timedatectl udevadm dmsetup losetup cryptsetup lvm mdadm zfs "
    "zpool btrfs parted fdisk sfdisk gdisk debugfs xfs_io ldconfig update-alternatives "
    "dpkg-reconfigure debconf update-rc.d invoke-rc.d rc-service chkconfig sysctl kexec "
    "wpa_cli nmcli nft ebtables wg wg-quick openvpn ipsec pppd dhclient avahi-daemon "
    "lpr cancel cupsfilter enscript a2ps msgfilter recode tidy xmlstarlet yelp zathura "
    "evince okular gimp inkscape blender libreoffice soffice abiword gnumeric emacsclient "
    "kak helix hx ne jed mg zile ee nvi elvis levee code codium subl gedit kate "
    "psftp pscp plink sshfs sshuttle ssh-copy-id ssh-keyscan autossh stunnel websocat chisel "
    "wine64 qemu-system qemu-img qemu virsh virt-install vboxmanage vmrun multipass lxc lxd incus "
    "ansible-test ansible-galaxy ansible-console puppet-apply bolt "
    "git-shell gitk tkdiff meld kdiff3 interdiff run0 varlinkctl "
    "sensible-editor sensible-pager sensible-browser select-editor lesspipe lessfile zless bzless "
    "xzless lzless zstdless zmore bzmore xzmore lzmore gio gdbus gapplication dbus-daemon gdbtui "
    "gdb-add-index gcore vgdb callgrind_control pdb pydoc pygmentize prove instmodsh perlthanks "
    "lli opt llc llvm-jitlink llvm-lto llvm-lto2 mvndebug corepack jdb jlink javadoc jpackage "
    "pgbench pg_restore pg_conftool pg_ctlcluster scalar cscope ctags-universal ssh-add gpgsm "
    "gpgtar gpg-connect-agent gpgconf c_rehash ucf grog neqn apt-cache apt-config apt-key "
    "apt-mark apt-cdrom add-apt-repository apt-add-repository kpt gsutil bq gprofng "
    "gp-collect-app ar nm ranlib strip objcopy gold fsck mkfs atd cron init systemd "
    "deb-systemd-invoke networkctl adduser "
    "objdump gcov lcov as nasm yasm c89 c99 c11 f77 f95 gfortran gnat gdc dmd rdmd "
    "check_by_ssh rsyslogd syslog-ng logger-run dstat pidstat sar nmon "
    "arj unar 7zr lha zoo cabextract unsquashfs mksquashfs genisoimage xorriso rpm2cpio "
    "update-mime-database gtk-update-icon-cache fc-cache desktop-file-install catman "
    "gvim evim gview rview rgvim rgview eview vimx nvim-qt red vidir vipe visudo ispell bashbug "
    "top htop btop atop iftop hping3 bconsole cdist certbot dosbox eb apache2 apache2ctl httpd "
    "nginx sshd aoss ncftp neofetch opkg zypper rpmdb rpmquery rpmverify rpmkeys rtorrent "
    "wireshark dumpcap xdg-user-dir xdg-email xdg-terminal volatility sqlmap lwp-request "
    "lwp-download nix-build nixos-rebuild podman-remote mold lit shellspec lefthook husky thefuck "
    "starship checkinstall sbuild pbuilder alien pinentry kinit gtar gfind ugrep ug pg xmore mtr "
    "install patch updatedb sdiff diff3 svnlook svnadmin svnsync svnserve cvs rcs ci co rcsdiff "
    "fossil darcs jj sl pijul mtn repo hub tea yt-dlp youtube-dl gallery-dl transmission-cli "
    "transmission-daemon transmission-remote deluge qbittorrent qbittorrent-nox fetchmail "
    "getmail mbsync isync offlineimap msmtp sendmail procmail maildrop dnsmasq hostapd udhcpc "
    "dhcpcd vpnc openconnect inetd xinetd keepalived haproxy lighttpd caddy uwsgi sox play rec "
    "mencoder compare composite montage animate display stream import gm chromium chromium- "
    "browser google-chrome chrome firefox brave brave-browser opera vivaldi epiphany electron "
    "playwright pg_ctl postgres mysqld mariadbd redis-server mongod usql isql litecli pgcli "
    "mycli star dar dump restore dcfldd dc3dd lnav bison flex yacc byacc protoc capnp uscan "
    "uupdate dch debchange debsign dput dget debi gbp quilt gtags global htags clang-tidy "
    "clangd cppcheck tofu terragrunt tflint pass gopass chezmoi yadm pixi rye hatch pdm flit "
    "pipenv cookiecutter copier dvc snakemake nextflow luigi airflow prefect doit supervisord "
    "supervisorctl circusd monit coredumpctl"
)
_WRITES_ANYWHERE = words(
    "cp mv ln install tee dd truncate shred rm rmdir unlink chmod chown chgrp touch mkdir mkfifo "
    "mknod patch link rename sponge setfacl chattr gzip gunzip bzip2 bunzip2 xz unxz zstd lz4 lzma"
)
_BUILTINS = words(
    "cd pushd popd dirs export unset set eval exec source . : command builtin alias unalias trap "
    "umask ulimit read readonly local declare typeset let shift return exit logout break continue "
    "wait jobs fg bg disown hash type getopts times enable shopt mapfile readarray suspend "
    "history fc bind complete compgen compopt caller"
)
_TABLE: dict[str, Kind] = {
    **dict.fromkeys(_LAUNCHERS, Kind.LAUNCHER),
    **dict.fromkeys(_INTERPRETERS, Kind.INTERPRETER),
    **dict.fromkeys(_BLOCKED, Kind.BLOCKED_WRAPPER),
    **dict.fromkeys(_PRIVILEGE, Kind.PRIVILEGE),
    **dict.fromkeys(MULTIPLEXERS, Kind.MULTIPLEXER),
    **dict.fromkeys(SHELLS, Kind.SHELL),
    **dict.fromkeys(WRAPPERS, Kind.WRAPPER),
}
# `bash-static`, `php-cgi`, `sudo-rs`: a name that begins like one of these is one of these.
_FAMILIES = frozenset({Kind.SHELL, Kind.INTERPRETER, Kind.MULTIPLEXER, Kind.PRIVILEGE})
_TRIPLET = re.compile(r"[a-z0-9_]+-(?:[a-z0-9]+-)?linux-(?:gnu|musl)[a-z0-9]*-(?=.)")
_COMPILERS = ("-gcc", "-g++", "-cpp", "-ld", "-clang", "-gdb", "-ar", "-nm", "-ranlib", "-objcopy")
_VERSION = re.compile(r"[-._]?\d[\d._]*[a-z]?$")

_SENTENCES: dict[Kind, str] = {
    Kind.WRAPPER: "{name} starts another program; allow that program instead",
    Kind.BLOCKED_WRAPPER: "{name} starts another program in a way that cannot be followed, so a "
    "rule for it would allow everything",
    Kind.PRIVILEGE: "{name} runs commands with other rights, so it asks every time",
    Kind.SHELL: "{name} is a shell: it runs any text it is given, so it cannot be trusted for ever",
    Kind.MULTIPLEXER: "{name} is many programs in one file, a shell among them, so a rule for it "
    "would allow everything",
    Kind.INTERPRETER: "{name} is an interpreter: it runs any program text it is given, so it "
    "cannot be trusted for ever",
    Kind.LAUNCHER: "{name} can start other programs through its options or files, so a rule for it "
    "with any arguments would allow everything",
    Kind.BUILTIN: "{name} is part of the shell, there is no program file that a rule could name",
}


@functools.lru_cache(maxsize=1024)
def classify(name: str) -> Kind:
    """The kind of a program by its file name (no directory). Versions and case do not matter.

    A word of the shell itself is PLAIN here, see `is_builtin`: only the command word counts.
    """
    lowered = name.lower().removesuffix(".exe")
    if lowered.startswith(("ld-linux", "ld-musl", "ld.so", "ld64.so")):
        return Kind.INTERPRETER
    lowered = _TRIPLET.sub("", lowered, count=1)  # x86_64-linux-gnu-python3
    for form in _forms(lowered):
        kind = _TABLE.get(form)
        if kind is not None:
            return kind
    if lowered.endswith(_COMPILERS) or _VERSION.sub("", lowered).endswith(_COMPILERS):
        return Kind.LAUNCHER  # x86_64-linux-gnu-gcc-12
    if lowered.startswith(("qemu-", "wine-", "box64-")):
        return Kind.BLOCKED_WRAPPER  # qemu-x86_64-static PROGRAM
    for form in _forms(re.split(r"[-_]", lowered, maxsplit=1)[0]):  # python3-dbg
        kind = _TABLE.get(form, Kind.PLAIN)
        if kind in _FAMILIES or (kind is not Kind.PLAIN and lowered.startswith("git-")):
            return kind
    return Kind.PLAIN


def is_builtin(word: str) -> bool:
    """Whether the shell itself carries this word out and changes its own state by it."""
    return word in _BUILTINS


def writes_anywhere(name: str) -> bool:
    """Whether a program can write or remove whatever files its arguments name."""
    return name in _WRITES_ANYWHERE


def refusal(kind: Kind, name: str) -> str | None:
    """Why a program of this kind cannot be allowed for ever; None when it can."""
    sentence = _SENTENCES.get(kind)
    return sentence.format(name=name) if sentence else None


def _forms(name: str) -> tuple[str, ...]:
    """`python3.11` is also python, `vim.basic` vim, `gcc-12` gcc."""
    bare = _VERSION.sub("", name) or name
    first = bare.split(".", maxsplit=1)[0]
    return tuple(dict.fromkeys((name, bare, first, _VERSION.sub("", first))))
