"""The key names OpenClaw 2026.2.26 accepts, so that only real mistakes are reported.

Names are facts of the file format; which of them this engine reads is told by the sections.
`[]` stands for any list item, `*` for any key; a place without an entry takes anything. The key
`claw` is ours.
"""

from __future__ import annotations

from functools import cache

_TABLE = """
(root): $schema acp agents approvals audio auth bindings broadcast browser canvasHost channels claw
  commands cron diagnostics discovery env gateway hooks logging media memory messages meta models
  nodeHost plugins secrets session skills talk tools ui update web wizard
acp: allowedAgents backend defaultAgent dispatch enabled maxConcurrentSessions runtime stream
acp.dispatch: enabled
acp.runtime: installCommand ttlMinutes
acp.stream: coalesceIdleMs maxChunkChars
agents: defaults list
agents.defaults: blockStreamingBreak blockStreamingChunk blockStreamingCoalesce
  blockStreamingDefault bootstrapMaxChars bootstrapTotalMaxChars cliBackends compaction
  contextPruning contextTokens elevatedDefault embeddedPi envelopeElapsed envelopeTimestamp
  envelopeTimezone heartbeat humanDelay imageMaxDimensionPx imageModel maxConcurrent mediaMaxMb
  memorySearch model models repoRoot sandbox skipBootstrap subagents thinkingDefault timeFormat
  timeoutSeconds typingIntervalSeconds typingMode userTimezone verboseDefault workspace
agents.defaults.blockStreamingChunk: breakPreference maxChars minChars
agents.defaults.blockStreamingCoalesce: idleMs maxChars minChars
agents.defaults.compaction: keepRecentTokens maxHistoryShare memoryFlush mode reserveTokens
  reserveTokensFloor
agents.defaults.compaction.memoryFlush: enabled prompt softThresholdTokens systemPrompt
agents.defaults.contextPruning: hardClear hardClearRatio keepLastAssistants minPrunableToolChars
  mode softTrim softTrimRatio tools ttl
agents.defaults.contextPruning.hardClear: enabled placeholder
agents.defaults.contextPruning.softTrim: headChars maxChars tailChars
agents.defaults.contextPruning.tools: allow deny
agents.defaults.embeddedPi: projectSettingsPolicy
agents.defaults.heartbeat: accountId ackMaxChars activeHours directPolicy every includeReasoning
  model prompt session suppressToolErrorWarnings target to
agents.defaults.heartbeat.activeHours: end start timezone
agents.defaults.humanDelay: maxMs minMs mode
agents.defaults.imageModel: fallbacks primary
agents.defaults.memorySearch: cache chunking enabled experimental extraPaths fallback local model
  provider query remote sources store sync
agents.defaults.memorySearch.cache: enabled maxEntries
agents.defaults.memorySearch.chunking: overlap tokens
agents.defaults.memorySearch.experimental: sessionMemory
agents.defaults.memorySearch.local: modelCacheDir modelPath
agents.defaults.memorySearch.query: hybrid maxResults minScore
agents.defaults.memorySearch.query.hybrid: candidateMultiplier enabled mmr temporalDecay
  textWeight vectorWeight
agents.defaults.memorySearch.query.hybrid.mmr: enabled lambda
agents.defaults.memorySearch.query.hybrid.temporalDecay: enabled halfLifeDays
agents.defaults.memorySearch.remote: apiKey baseUrl batch headers
agents.defaults.memorySearch.remote.batch: concurrency enabled pollIntervalMs timeoutMinutes wait
agents.defaults.memorySearch.store: driver path vector
agents.defaults.memorySearch.store.vector: enabled extensionPath
agents.defaults.memorySearch.sync: intervalMinutes onSearch onSessionStart sessions watch
  watchDebounceMs
agents.defaults.memorySearch.sync.sessions: deltaBytes deltaMessages
agents.defaults.model: fallbacks primary
agents.defaults.models: *
agents.defaults.models.*: alias params streaming
agents.defaults.sandbox: backend browser docker mode perSession prune scope sessionToolsVisibility
  workspaceAccess workspaceRoot
agents.defaults.sandbox.docker: apparmorProfile binds capDrop containerPrefix cpus
  dangerouslyAllowContainerNamespaceJoin dangerouslyAllowExternalBindSources
  dangerouslyAllowReservedContainerTargets dns engine env extraHosts image memory memorySwap network
  pidsLimit readOnlyRoot seccompProfile setupCommand timeoutSec tmpfs ulimits user workdir
agents.defaults.sandbox.prune: idleHours maxAgeDays
agents.defaults.subagents: announceTimeoutMs archiveAfterMinutes maxChildrenPerAgent maxConcurrent
  maxSpawnDepth model runTimeoutSeconds thinking
agents.defaults.subagents.model: fallbacks primary
agents.list: []
agents.list.[]: agentDir default groupChat heartbeat humanDelay id identity memorySearch model
  name sandbox skills subagents tools workspace
agents.list.[].groupChat: historyLimit mentionPatterns
agents.list.[].humanDelay: maxMs minMs mode
agents.list.[].identity: avatar emoji name theme
agents.list.[].model: fallbacks primary
agents.list.[].sandbox: backend browser docker mode perSession prune scope sessionToolsVisibility
  workspaceAccess workspaceRoot
agents.list.[].sandbox.prune: idleHours maxAgeDays
agents.list.[].subagents: allowAgents model thinking
agents.list.[].subagents.model: fallbacks primary
agents.list.[].tools: allow alsoAllow byProvider deny elevated exec fs loopDetection profile
  sandbox
approvals: exec
approvals.exec: agentFilter enabled mode sessionFilter targets
approvals.exec.targets: []
approvals.exec.targets.[]: accountId channel threadId to
audio: transcription
audio.transcription: command timeoutSeconds
auth: cooldowns order profiles
auth.cooldowns: billingBackoffHours billingBackoffHoursByProvider billingMaxHours
  failureWindowHours
auth.profiles: *
auth.profiles.*: email mode provider
bindings: []
bindings.[]: agentId comment match
bindings.[].match: accountId channel guildId peer roles teamId
bindings.[].match.peer: id kind
broadcast: * strategy
browser: attachOnly cdpUrl color defaultProfile enabled evaluateEnabled executablePath headless
  noSandbox profiles remoteCdpHandshakeTimeoutMs remoteCdpTimeoutMs snapshotDefaults ssrfPolicy
browser.profiles: *
browser.profiles.*: cdpPort cdpUrl color driver
browser.snapshotDefaults: mode
browser.ssrfPolicy: allowPrivateNetwork allowedHostnames dangerouslyAllowPrivateNetwork
  hostnameAllowlist
canvasHost: enabled liveReload port root
claw: approvalTimeoutMs budgets durability permissionMode resume trace
claw.budgets: day session
claw.budgets.day: action cost step tokens warnAt
claw.budgets.session: action cost step tokens warnAt
claw.trace: enabled maxAgeDays maxMb
commands: allowFrom bash bashForegroundMs config debug native nativeSkills ownerAllowFrom
  ownerDisplay ownerDisplaySecret restart text useAccessGroups
cron: enabled maxConcurrentRuns runLog sessionRetention store webhook webhookToken
cron.runLog: keepLines maxBytes
diagnostics: cacheTrace enabled flags otel
diagnostics.cacheTrace: enabled filePath includeMessages includePrompt includeSystem
diagnostics.otel: enabled endpoint flushIntervalMs headers logs metrics protocol sampleRate
  serviceName traces
discovery: mdns wideArea
discovery.mdns: mode
discovery.wideArea: enabled
env: * shellEnv vars
env.shellEnv: enabled timeoutMs
gateway: allowRealIpFallback auth bind channelHealthCheckMinutes controlUi customBindHost http
  mode nodes port reload remote tailscale tls tools trustedProxies
gateway.auth: allowTailscale mode password rateLimit token trustedProxy
gateway.auth.rateLimit: exemptLoopback lockoutMs maxAttempts windowMs
gateway.auth.trustedProxy: allowUsers requiredHeaders userHeader
gateway.controlUi: allowInsecureAuth allowedOrigins basePath
  dangerouslyAllowHostHeaderOriginFallback dangerouslyDisableDeviceAuth enabled root
gateway.http: endpoints securityHeaders
gateway.http.endpoints: chatCompletions responses
gateway.http.endpoints.chatCompletions: enabled
gateway.http.endpoints.responses: enabled files images maxBodyBytes maxUrlParts
gateway.http.endpoints.responses.files: allowUrl allowedMimes maxBytes maxChars maxRedirects pdf
  timeoutMs urlAllowlist
gateway.http.endpoints.responses.files.pdf: maxPages maxPixels minTextChars
gateway.http.endpoints.responses.images: allowUrl allowedMimes maxBytes maxRedirects timeoutMs
  urlAllowlist
gateway.http.securityHeaders: strictTransportSecurity
gateway.nodes: allowCommands browser denyCommands
gateway.nodes.browser: mode node
gateway.reload: debounceMs mode
gateway.remote: password sshIdentity sshTarget tlsFingerprint token transport url
gateway.tailscale: mode resetOnExit
gateway.tls: autoGenerate caPath certPath enabled keyPath
gateway.tools: allow deny
hooks: allowRequestSessionKey allowedAgentIds allowedSessionKeyPrefixes defaultSessionKey enabled
  gmail internal mappings maxBodyBytes path presets token transformsDir
hooks.internal: enabled entries handlers installs load
hooks.internal.installs: *
hooks.internal.installs.*: hooks installPath installedAt integrity resolvedAt resolvedName
  resolvedSpec resolvedVersion shasum source sourcePath spec version
hooks.internal.load: extraDirs
hooks.mappings: []
hooks.mappings.[]: action agentId allowUnsafeExternalContent channel deliver id match
  messageTemplate model name sessionKey textTemplate thinking timeoutSeconds to transform wakeMode
hooks.mappings.[].match: path source
hooks.mappings.[].transform: export module
logging: consoleLevel consoleStyle file level maxFileBytes redactPatterns redactSensitive
media: preserveFilenames
memory: backend citations qmd
memory.qmd: command includeDefaultMemory limits mcporter paths scope searchMode sessions update
memory.qmd.limits: maxInjectedChars maxResults maxSnippetChars timeoutMs
memory.qmd.mcporter: enabled serverName startDaemon
memory.qmd.paths: []
memory.qmd.paths.[]: name path pattern
memory.qmd.scope: default rules
memory.qmd.scope.rules: []
memory.qmd.scope.rules.[]: action match
memory.qmd.scope.rules.[].match: channel chatType keyPrefix rawKeyPrefix
memory.qmd.sessions: enabled exportDir retentionDays
memory.qmd.update: commandTimeoutMs debounceMs embedInterval embedTimeoutMs interval onBoot
  updateTimeoutMs waitForBootSync
messages: ackReaction ackReactionScope groupChat inbound messagePrefix queue removeAckAfterReply
  responsePrefix statusReactions suppressToolErrors tts
messages.groupChat: historyLimit mentionPatterns
messages.inbound: byChannel debounceMs
messages.queue: byChannel cap debounceMs debounceMsByChannel drop mode
messages.statusReactions: emojis enabled timing
messages.statusReactions.emojis: coding done error stallHard stallSoft thinking tool web
messages.statusReactions.timing: debounceMs doneHoldMs errorHoldMs stallHardMs stallSoftMs
meta: lastTouchedAt lastTouchedVersion
models: bedrockDiscovery mode providers
models.bedrockDiscovery: defaultContextWindow defaultMaxTokens enabled providerFilter
  refreshInterval region
models.providers: *
models.providers.*: api apiKey auth authHeader baseUrl headers models
models.providers.*.models: []
models.providers.*.models.[]: api compat contextWindow cost headers id input maxTokens name
  reasoning
models.providers.*.models.[].cost: cacheRead cacheWrite input output
nodeHost: browserProxy
nodeHost.browserProxy: allowProfiles enabled
plugins: allow deny enabled entries installs load slots
plugins.entries: *
plugins.entries.*: config enabled
plugins.installs: *
plugins.installs.*: installPath installedAt integrity resolvedAt resolvedName resolvedSpec
  resolvedVersion shasum source sourcePath spec version
plugins.load: paths
plugins.slots: memory
secrets: defaults providers resolution
secrets.defaults: env exec file
secrets.providers: *
secrets.providers.*: allowInsecurePath allowSymlinkCommand allowlist args command env jsonOnly
  maxBytes maxOutputBytes mode noOutputTimeoutMs passEnv path source timeoutMs trustedDirs
secrets.resolution: maxBatchBytes maxProviderConcurrency maxRefsPerProvider
session: agentToAgent dmScope identityLinks idleMinutes mainKey maintenance parentForkMaxTokens
  reset resetByChannel resetByType resetTriggers scope sendPolicy store threadBindings
  typingIntervalSeconds typingMode
session.agentToAgent: maxPingPongTurns
session.maintenance: highWaterBytes maxDiskBytes maxEntries mode pruneAfter pruneDays
  resetArchiveRetention rotateBytes
session.reset: atHour idleMinutes mode
session.resetByChannel: *
session.resetByChannel.*: atHour idleMinutes mode
session.resetByType: direct dm group thread
session.resetByType.direct: atHour idleMinutes mode
session.resetByType.dm: atHour idleMinutes mode
session.resetByType.group: atHour idleMinutes mode
session.resetByType.thread: atHour idleMinutes mode
session.sendPolicy: default rules
session.threadBindings: enabled ttlHours
skills: allowBundled entries install limits load
skills.entries: *
skills.entries.*: apiKey config enabled env
skills.install: nodeManager preferBrew
skills.limits: maxCandidatesPerRoot maxSkillFileBytes maxSkillsInPrompt maxSkillsLoadedPerSource
  maxSkillsPromptChars
skills.load: extraDirs watch watchDebounceMs
talk: apiKey interruptOnSpeech modelId outputFormat provider providers voiceAliases voiceId
talk.providers: *
talk.providers.*: * apiKey modelId outputFormat voiceAliases voiceId
tools: agentToAgent allow alsoAllow byProvider deny elevated exec fs links loopDetection media
  message profile sandbox sessions subagents web
tools.agentToAgent: allow enabled
tools.byProvider: *
tools.byProvider.*: allow alsoAllow deny profile
tools.elevated: allowFrom enabled
tools.exec: applyPatch ask backgroundMs cleanupMs confine confineMemoryPercent confineNetwork
  confineProcesses confineReach confineWritable host node notifyOnExit notifyOnExitEmptySuccess
  pathPrepend safeBinProfiles safeBinTrustedDirs safeBins security timeoutSec
tools.exec.applyPatch: allowModels enabled workspaceOnly
tools.exec.safeBinProfiles: *
tools.exec.safeBinProfiles.*: allowedValueFlags deniedFlags maxPositional minPositional
tools.fs: workspaceOnly
tools.links: enabled maxLinks models scope timeoutSeconds
tools.links.models: []
tools.links.models.[]: args command timeoutSeconds type
tools.links.scope: default rules
tools.links.scope.rules: []
tools.links.scope.rules.[]: action match
tools.links.scope.rules.[].match: channel chatType keyPrefix rawKeyPrefix
tools.loopDetection: criticalThreshold detectors enabled globalCircuitBreakerThreshold historySize
  warningThreshold
tools.loopDetection.detectors: genericRepeat knownPollNoProgress pingPong
tools.media: audio concurrency image models video
tools.message: allowCrossContextSend broadcast crossContext
tools.message.broadcast: enabled
tools.message.crossContext: allowAcrossProviders allowWithinProvider marker
tools.message.crossContext.marker: enabled prefix suffix
tools.sandbox: tools
tools.sandbox.tools: allow alsoAllow deny
tools.sessions: visibility
tools.subagents: tools
tools.subagents.tools: allow alsoAllow deny
tools.web: fetch search
tools.web.fetch: cacheTtlMinutes enabled maxChars maxCharsCap maxRedirects timeoutSeconds
  userAgent
tools.web.search: apiKey cacheTtlMinutes enabled gemini grok kimi maxResults perplexity provider
  timeoutSeconds
tools.web.search.gemini: apiKey model
tools.web.search.grok: apiKey inlineCitations model
tools.web.search.kimi: apiKey baseUrl model
tools.web.search.perplexity: apiKey baseUrl model
ui: assistant seamColor
ui.assistant: avatar name
update: auto channel checkOnStart
update.auto: betaCheckIntervalHours enabled stableDelayHours stableJitterHours
web: enabled heartbeatSeconds reconnect
web.reconnect: factor initialMs jitter maxAttempts maxMs
wizard: lastRunAt lastRunCommand lastRunCommit lastRunMode lastRunVersion"""


@cache
def known_keys() -> dict[str, frozenset[str]]:
    """Dotted place (`""` is the top) → the names allowed there."""
    table: dict[str, frozenset[str]] = {}
    place = ""
    for line in _TABLE.strip().splitlines():
        head, colon, names = line.partition(": ")
        if colon and not line.startswith(" "):
            place = "" if head == "(root)" else head
            table[place] = frozenset(names.split())
        else:
            table[place] |= frozenset(line.split())
    return table
