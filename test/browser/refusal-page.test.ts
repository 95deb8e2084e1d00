import { expect, it } from 'vitest'
import { WORDS } from '../../src/gate/refusal-words.ts'
import { faultsOf, useBrowser } from '../page/browser.ts'
import { stillClock } from '../support/clock.ts'
import { readBody, startDevice } from '../support/device.ts'
import { unusedPort } from '../support/raw.ts'
import { startSidecar, type TestSidecar, type YamlPart } from '../support/sidecar.ts'

const openPage = useBrowser()
/** The narrowest screen of WCAG 2.2, 1.4.10. */
const NARROW = { width: 320, height: 640 }
const OPEN = { public_paths: ['/'] }

const FORM = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Device</title>
<p>from the device</p><form method="post" action="/set"><button>Set</button></form>`

/** A sidecar whose device is not there yet, and a function that starts it. */
async function startBeforeDevice() {
  const port = await unusedPort()
  const sidecar = await startSidecar({ device: { url: `http://127.0.0.1:${port}` }, config: OPEN })
  return {
    sidecar,
    startDevice: () =>
      startDevice(
        async (request, response) => {
          await readBody(request)
          response.setHeader('Content-Type', 'text/html').end(FORM)
        },
        { port },
      ),
  }
}

/** A page that has come back three times before the device is there is refused for a second, by the clock, before the device is asked again. */
const passProbe = ({ clock }: TestSidecar): Promise<void> => clock.advance(1_001)

/** A sidecar whose one request for an hour is used up. */
async function startUsedUp(config: YamlPart = {}): Promise<TestSidecar> {
  const limits = { api: { requests: 1, window: '1h' } }
  const sidecar = await startSidecar({ config: { ...OPEN, limits, ...config } })
  await sidecar.request()
  return sidecar
}

it('H316 a page about a device that is down comes back by itself, and shows that of the device', async () => {
  const { sidecar, startDevice } = await startBeforeDevice()
  const page = await openPage(`${sidecar.url}/state?of=boiler`)
  await page.getByRole('heading', { name: WORDS.en.down[0] }).waitFor()
  const device = await startDevice()
  await passProbe(sidecar)
  await page.getByText('from the device').waitFor()
  expect(page.url()).toBe(`${sidecar.url}/state?of=boiler`)
  expect(device.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['GET /state?of=boiler'])
})

it('H316 it comes back behind a fragment, too, as the pages of many devices have one', async () => {
  const { sidecar, startDevice } = await startBeforeDevice()
  const page = await openPage(`${sidecar.url}/state?of=boiler#/network`)
  await page.getByRole('heading', { name: WORDS.en.down[0] }).waitFor()
  const device = await startDevice()
  await passProbe(sidecar)
  await page.getByText('from the device').waitFor()
  expect(device.requests.map(({ target }) => target)).toEqual(['/state?of=boiler'])
})

it('H316 a form for a device that is down gets a page, and is not sent again by itself', async () => {
  const { sidecar, startDevice } = await startBeforeDevice()
  const before = await startDevice()
  const page = await openPage(sidecar.url)
  await page.getByText('from the device').waitFor()
  await before.stop()
  // By now the sidecar has read the FIN. A device that worked within the last second would be asked several times.
  await sidecar.metrics()
  await sidecar.clock.advance(1_001)
  await page.getByRole('button').click()
  await page.getByText(WORDS.en.unsent).waitFor()
  // This one comes back by itself: later than the form would.
  const other = await page.context().newPage()
  await other.goto(`${sidecar.url}/other`)
  const device = await startDevice()
  await sidecar.clock.advance(1_001)
  await other.getByText('from the device').waitFor()
  expect(device.requests.map(({ method, target }) => `${method} ${target}`)).toEqual(['GET /other'])
  expect(await page.getByText(WORDS.en.unsent).count()).toBe(1)
})

it('H316 a page about the limit comes back when the window has closed', async () => {
  const limits = { api: { requests: 1, window: '2s' } }
  const sidecar = await startSidecar({ clock: stillClock(), config: { ...OPEN, limits } })
  await sidecar.request()
  const page = await openPage(sidecar.url)
  await page.getByRole('heading', { name: WORDS.en.limited[0] }).waitFor()
  await sidecar.clock.advance(2_000)
  await page.getByText('from the device').waitFor()
})

it('H317 axe finds nothing: in each language, at 320 px, with text of 200 %, light and dark', async () => {
  const sidecar = await startUsedUp({ realm: 'Boiler house, east wing' })
  const withoutLogin = await startSidecar()
  const page = await openPage('about:blank', { bypassCSP: true })
  await page.setViewportSize(NARROW)
  for (const [language, words] of Object.entries(WORDS)) {
    await page.setExtraHTTPHeaders({ 'Accept-Language': language })
    for (const [{ url }, [title]] of [
      [sidecar, words.limited],
      [withoutLogin, words.token],
    ] as const) {
      await page.goto(url)
      expect(await page.locator('html').getAttribute('lang')).toBe(language)
      expect(await page.getByRole('heading').allTextContents()).toEqual([title])
      for (const size of ['100%', '200%']) {
        await page.evaluate(`document.documentElement.style.fontSize = '${size}'`)
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.emulateMedia({ colorScheme })
          const at = `${language}, ${title}, ${size}, ${colorScheme}`
          expect(await faultsOf(page), at).toEqual([])
          expect(await page.evaluate('document.documentElement.scrollWidth'), at).toBe(NARROW.width)
        }
      }
    }
  }
})

it('H317 the page reads in order, and the keyboard alone tries again', async () => {
  const sidecar = await startUsedUp({ realm: 'Boiler' })
  const page = await openPage(sidecar.url)
  const tree = await page.locator('body').ariaSnapshot()
  expect(
    tree.split('\n').map((line) =>
      line
        .trim()
        .replace(/[0-9a-f]{32}/, 'ID')
        .replace(/\d{4}/, 'TIME'),
    ),
  ).toEqual([
    '- main:',
    `- heading "${WORDS.en.limited[0]}" [level=1]`,
    `- paragraph: ${WORDS.en.limited[1]}`,
    `- paragraph: "${WORDS.en.soon} TIME"`,
    `- link "${WORDS.en.again}":`,
    '- /url: ""',
    '- paragraph:',
    `- text: "${WORDS.en.id}"`,
    '- code: ID',
    '- paragraph: Boiler',
  ])
  await sidecar.clock.leap(3_600_000)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('from the device').waitFor()
})
