import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { WORDS } from '../../src/browser/login-page.ts'
import { DESKTOP, faultsOf, PHONE, useBrowser } from '../page/browser.ts'
import { makeCertificate } from '../support/certificate.ts'
import { type Device, startDevice } from '../support/device.ts'
import { PASSWORD } from '../support/sidecar.ts'
import { acceptWebSockets } from '../support/websocket.ts'
import { startWithLogin } from './browsing.ts'

const openPage = useBrowser()
const ignoreHTTPSErrors = true

async function logIn(page: Page): Promise<void> {
  await page.locator('#password').fill(PASSWORD)
  await page.keyboard.press('Enter')
  await page.locator('#password').waitFor({ state: 'detached' })
  await page.waitForURL((url) => !url.pathname.startsWith('/oauth/'))
}

it('H187 axe finds nothing on the login page: in each language, on a phone and a desktop, light and dark', async () => {
  const sidecar = await startWithLogin({ transport: 'h2', config: { realm: 'Boiler house, east wing' } })
  const page = await openPage(sidecar.url, { ignoreHTTPSErrors, bypassCSP: true })
  for (const locale of Object.keys(WORDS)) {
    await page.setExtraHTTPHeaders({ 'Accept-Language': locale })
    await page.goto(`${sidecar.url}/settings`)
    expect(await page.locator('html').getAttribute('lang')).toBe(locale)
    for (const view of [PHONE, DESKTOP]) {
      await page.setViewportSize(view)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        const at = `${locale}, ${view.width} px, ${colorScheme}`
        expect(await faultsOf(page), at).toEqual([])
        expect(await page.evaluate('document.documentElement.scrollWidth'), at).toBe(view.width)
      }
    }
    await page.locator('#password').fill('wrong')
    await page.keyboard.press('Enter')
    await page
      .getByRole('alert')
      .getByText(WORDS[locale]?.wrong ?? 'none')
      .waitFor()
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      expect(await faultsOf(page), `${locale}, ${colorScheme}, with a message`).toEqual([])
    }
    await page.goto(`${sidecar.url}/oauth/logout`)
    expect(await faultsOf(page), `${locale}, log-out`).toEqual([])
  }
})

/** A device with a page that follows events, and a form that changes its state. */
function startDeviceWithPage(): Promise<Device> {
  return startDevice((request, response) => {
    if (request.url === '/events') {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: live\n\n')
      return
    }
    response.setHeader('Content-Type', 'text/html')
    response.end(`<!doctype html><link rel="icon" href="data:,"><p>none</p>
<form method="post" action="/set?on=1"><button>Set</button></form>
<script>new EventSource('/events').onmessage = ({ data }) => { document.querySelector('p').textContent = data }</script>`)
  })
}

it('H187 H188 without scripts, too, a browser logs in and gets the page that it asked for, with its forms', async () => {
  const device = await startDeviceWithPage()
  const sidecar = await startWithLogin({ transport: 'h2', device })
  const page = await openPage(`${sidecar.url}/state?of=boiler`, {
    ignoreHTTPSErrors,
    javaScriptEnabled: false,
  })
  await logIn(page)
  expect(page.url()).toBe(`${sidecar.url}/state?of=boiler`)
  await page.getByRole('button', { name: 'Set' }).click()
  await page.waitForURL(`${sidecar.url}/set?on=1`)
  expect(device.requests.map(({ method, target }) => `${method} ${target}`)).toEqual([
    'GET /state?of=boiler',
    'POST /set?on=1',
  ])
  expect(device.requests.flatMap(({ fields }) => fields).join()).not.toContain('__Host-postern')
})

it('H188 events of the device reach its page', async () => {
  const sidecar = await startWithLogin({ transport: 'h2', device: await startDeviceWithPage() })
  const page = await openPage(`${sidecar.url}/`, { ignoreHTTPSErrors })
  await logIn(page)
  await page.getByText('live').waitFor()
})

/** The page of an attacker, at another port of the same host: the same site to the cookie. */
const ATTACK = `<!doctype html><link rel="icon" href="data:,">
<img src="POSTERN/reboot?by=img"><iframe name="frame" src="POSTERN/reboot?by=frame"></iframe>
<form method="post" action="POSTERN/reboot?by=form" target="frame"><button>Win</button></form>
<a href="POSTERN/reboot?by=link">Link</a>
<script>
const done = []
async function attack() {
  for (const method of ['GET', 'POST']) {
    await fetch('POSTERN/reboot?by=fetch', { method, mode: 'no-cors', credentials: 'include' }).catch(() => {})
  }
  await fetch('POSTERN/reboot?by=cors', { method: 'PUT', credentials: 'include' }).catch(() => {})
  await fetch('POSTERN/oauth/logout', { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(() => {})
  navigator.sendBeacon('POSTERN/reboot?by=beacon', 'x')
  const socket = new WebSocket('POSTERN/socket'.replace('https', 'wss'))
  const events = new EventSource('POSTERN/reboot?by=events', { withCredentials: true })
  await Promise.all([socket, events].map((each) => new Promise((resolve) => { each.onerror = resolve; each.onopen = resolve })))
  events.close()
  document.title = 'done'
}
attack()
</script>`

async function startAttacker(attack: string): Promise<Device> {
  const { certFile, keyFile } = await makeCertificate('127.0.0.1')
  const tls = { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8') }
  return startDevice(
    (_, response) => {
      response.setHeader('Content-Type', 'text/html')
      response.end(attack)
    },
    { tls },
  )
}

it('H189 a page at another port of the same host reaches the device by nothing that Chromium offers', async () => {
  const device = await startDeviceWithPage()
  const { upgrades } = acceptWebSockets(device)
  const sidecar = await startWithLogin({ transport: 'tls', device })
  const page = await openPage(`${sidecar.url}/`, { ignoreHTTPSErrors, foreign: true })
  await logIn(page)
  await page.getByText('live').waitFor()
  const known = device.requests.length
  const attacker = await startAttacker(ATTACK.replaceAll('POSTERN', sidecar.url))
  await page.goto(attacker.url)
  await expect.poll(() => page.title()).toBe('done')
  await page.getByRole('button', { name: 'Win' }).click()
  // All but the PUT, whose preflight carries no cookie.
  await expect.poll(() => sidecar.metric('postern_refusals_total', { reason: 'cross_origin' })).toBe(9)
  await page.getByRole('link').click()
  const onward = page.getByRole('link', { name: WORDS.en.open })
  await onward.waitFor()
  expect(page.url()).toBe(`${sidecar.url}/reboot?by=link`)
  expect(await page.locator('form').count()).toBe(0)
  expect(device.requests.length).toBe(known)
  expect(upgrades).toEqual([])
  await onward.click()
  await page.getByText('live').waitFor()
  expect(page.url()).toBe(`${sidecar.url}/`)
})

it('H189 speculation rules of another port reach nothing, and the link behind them goes on as without them', async () => {
  const device = await startDeviceWithPage()
  const sidecar = await startWithLogin({ transport: 'tls', device })
  const page = await openPage(`${sidecar.url}/`, { ignoreHTTPSErrors, foreign: true })
  await logIn(page)
  await page.getByText('live').waitFor()
  const known = device.requests.length
  const at = (by: string): string => `${sidecar.url}/reboot?by=${by}`
  const rules = JSON.stringify({
    prefetch: [{ urls: [at('prefetch')], eagerness: 'immediate' }],
    prerender: [{ urls: [at('prerender')], eagerness: 'immediate' }],
  })
  const attacker = await startAttacker(`<!doctype html><link rel="icon" href="data:,">
<link rel="prefetch" href="${at('link')}"><script type="speculationrules">${rules}</script>
<script>fetchLater('${at('later')}', { activateAfter: 0, mode: 'no-cors', credentials: 'include' })</script>
<a href="${at('prefetch')}">Link</a>`)
  await page.goto(attacker.url)
  const refused = () => sidecar.metric('postern_refusals_total', { reason: 'cross_origin' })
  await expect.poll(refused).toBe(4)
  await page.getByRole('link').click()
  await page.waitForURL(at('prefetch'))
  expect(await refused()).toBe(5)
  expect(device.requests.length).toBe(known)
})
