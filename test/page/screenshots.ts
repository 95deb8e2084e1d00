import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as pause } from 'node:timers/promises'
import { makeCertificate } from '../support/certificate.ts'
import { closeAll } from '../support/cleanup.ts'
import { realClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { PAGE_PASSWORD, pageCookie, pagePasswordFile } from '../support/passwords.ts'
import { FORM_TYPE, PASSWORD_GRANT, startSidecar } from '../support/sidecar.ts'
import { DESKTOP, launchChromium, PHONE } from './browser.ts'

// `node test/page/screenshots.ts [FOLDER]` makes the pictures of the live page for README.md and docs/watching.md, in docs/images: of a running sidecar after 70 s of traffic.

const FOLDER = resolve(process.argv[2] ?? join(import.meta.dirname, '../../docs/images'))
const VIEWS = {
  phone: { viewport: PHONE, deviceScaleFactor: 2 },
  desktop: { viewport: DESKTOP, deviceScaleFactor: 1 },
}
const DAY = 86_400_000
// Chromium starts before the traffic, which it would slow down.
const browser = await launchChromium()
const start = Date.now()
const seconds = () => (Date.now() - start) / 1_000
const between = (low: number, high: number) => low + (high - low) * Math.random()

/** Most responses take 5 to 30 ms, some up to 80; for three seconds, all take longer, so that requests wait. */
function latency(): number {
  const slow = seconds() > 42 && seconds() < 45 ? 600 : 0
  return slow + between(5, 18 + 10 * Math.sin(seconds() / 5)) + (Math.random() < 0.08 ? between(20, 50) : 0)
}

const device = await startDevice((_, response) => {
  setTimeout(() => response.end('{"on":true}'), latency())
})
const { certFile, keyFile } = await makeCertificate('gateway-17', {
  notBefore: new Date(start - 80 * DAY),
  notAfter: new Date(start + 9.4 * DAY),
})
chmodSync(keyFile, 0o600)
const sidecar = await startSidecar({
  clock: realClock(),
  device,
  transport: 'tls',
  documentedLimits: true,
  machine: () => ({ names: ['gateway-17'], addresses: ['192.0.2.17'] }),
  config: {
    listen: { tls: { cert: certFile, key: keyFile }, trusted_proxies: ['127.0.0.1'] },
    upstream: { max_in_flight: 8, health: { path: '/', interval: '2s' } },
    tokens: { store: 'file' },
    admin: { password_file: pagePasswordFile() },
  },
})

/** A client with the address of a documentation network. Its connection is the proxy's. */
async function client(address: string): Promise<(path: string, token?: string) => Promise<number>> {
  const connection = await sidecar.connect()
  return async (path, token = '') => {
    const fields = ['X-Forwarded-For', address, 'Authorization', `Bearer ${token}`]
    return (await connection.send({ path, fields })).status
  }
}

async function logIn(address: string): Promise<string> {
  const fields = ['X-Forwarded-For', address, 'Content-Type', FORM_TYPE]
  const response = await sidecar.request({
    method: 'POST',
    path: '/oauth/token',
    fields,
    body: PASSWORD_GRANT,
  })
  return String(response.json().access_token)
}

let isOver = false

/** Logs in, and reads or sets channels, about `rate` times a second, the more often the higher the tide is. */
async function use(address: string, rate: number): Promise<void> {
  let token = await logIn(address)
  const send = await client(address)
  while (!isOver) {
    await pause(between(0.2, 1.8) * (1_000 / rate) * (1 - 0.3 * Math.sin(seconds() / 8)))
    const status = await send(`/api/channels/${Math.floor(between(0, 16))}/state`, token)
    if (status === 401) token = await logIn(address)
  }
}

/** Asks too often, from the 30th second on. */
async function hurry(address: string): Promise<void> {
  await pause(30_000)
  await use(address, 4)
}

/** Has only a token that has expired. */
async function knock(address: string): Promise<void> {
  const send = await client(address)
  while (!isOver) {
    await pause(between(3_000, 9_000))
    await send('/api/status', 'expired')
  }
}

const users = [
  ...Array.from({ length: 22 }, (_, i) => use(`192.0.2.${20 + 3 * i}`, between(0.6, 0.85))),
  use('2001:db8:7::12', 0.8),
  hurry('198.51.100.23'),
  knock('203.0.113.9'),
]
for (let i = 0; i < 3; i++) await logIn(`192.0.2.${120 + i}`)
await pause(25_000)
const grants = await sidecar.overview.grants()
const [grant] = grants === 'unavailable' ? [] : grants.rows
if (grant === undefined) throw new Error('no grant')
await fetch(`${sidecar.adminUrl}/page/revoke`, {
  method: 'POST',
  headers: {
    'Content-Type': 'application/json',
    Origin: sidecar.adminUrl,
    Cookie: await pageCookie(sidecar.adminUrl),
  },
  body: JSON.stringify({ grant: grant.id }),
})
await pause(45_000)

mkdirSync(FOLDER, { recursive: true })
for (const colorScheme of ['light', 'dark'] as const) {
  for (const [name, view] of Object.entries(VIEWS)) {
    const page = await browser.newPage({ colorScheme, ...view })
    page.on('console', (message) => console.error(message.text()))
    page.on('pageerror', (error) => console.error(error))
    await page.goto(`${sidecar.adminUrl}/`)
    await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByLabel('1 min').check()
    await page.locator('#requests button').first().waitFor()
    await page.locator('#grant-rows tr').first().waitFor()
    await page.mouse.move(0, 0)
    await page.evaluate('scrollTo(0, 0)')
    const devtools = await page.context().newCDPSession(page)
    const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality: 85 })
    writeFileSync(join(FOLDER, `page-${name}-${colorScheme}.webp`), Buffer.from(data, 'base64'))
    await page.close()
  }
}
isOver = true
await Promise.all(users)
await browser.close()
await closeAll()
