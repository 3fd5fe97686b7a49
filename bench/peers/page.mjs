// Drives OpenClaw's control page in a real browser. Arguments: one JSON object
// {playwright, browser, page, gateway, token, out, name}. One JSON line a check.
const given = JSON.parse(process.argv[2]);
const { chromium } = (await import(given.playwright)).default;

const check = (what, ok, detail = "") => console.log(JSON.stringify({ what, ok, detail }));
const browser = await chromium.launch({
  executablePath: given.browser,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
  page.setDefaultTimeout(120_000);
  page.on("pageerror", (error) => check("no error of the page", false, String(error)));
  await page.addInitScript(([url, token]) => {
    const key = "openclaw.control.settings.v1";
    localStorage.setItem(key, JSON.stringify({ gatewayUrl: url, token, sessionKey: "main" }));
  }, [given.gateway, given.token]);
  const picture = (name) => page.screenshot({ path: `${given.out}/${given.name}-${name}.png` });
  const seen = async (what, words) => {
    try {
      await page.getByText(words).first().waitFor();
      check(what, true);
    } catch (error) {
      check(what, false, String(error).slice(0, 300));
    }
  };
  const say = async (words) => {
    const field = page.locator(".chat-compose textarea");
    await field.waitFor();
    await page.waitForFunction(() => {
      const field = document.querySelector(".chat-compose textarea");
      return field && !field.disabled;
    });
    await field.fill(words);
    await field.press("Enter");
  };

  await page.goto(`${given.page}/chat?session=main`);
  await say("hello #say:whale");
  check("connected: it takes words", true);
  await seen("the answer came", /You said whale/);
  await picture("1-chat");
  await say("count #slow");
  await seen("words stream while it runs", /one two three/);
  await picture("2-stream");
  const stop = page.getByRole("button", { name: /stop/i }).first();
  await stop.click();
  await page.waitForFunction(() => !document.querySelector(".chat-compose button")
    ?.textContent?.match(/stop/i));
  check("its stop button ends the run", true);
  await page.goto(`${given.page}/sessions`);
  await seen("the session is listed", /agent:main:main/);
  await picture("3-sessions");
} catch (error) {
  check("the story was told to its end", false, String(error).slice(0, 500));
} finally {
  await browser.close();
}
