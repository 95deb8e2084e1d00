import { writeFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { resting, useBrowser } from '../page/browser.ts'
import { startTransmission } from '../sign-in/session-devices.ts'
import { realClock } from '../support/clock.ts'
import { PATIENCE } from '../support/running-test.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { startConsole, startSyncthing } from './interfaces.ts'

const openPage = useBrowser()

/** Starts a sidecar as an operator would, with the limits of the documented API. */
function startInFrontOf(device: { readonly url: string }): Promise<TestSidecar> {
  const config = { browser: { login: 'on' }, upstream: { host: 'target', rewrite: 'on' } }
  return startSidecar({ device, transport: 'h2', clock: realClock(), documentedLimits: true, config })
}

/** Types the password into the login page, which leads to the page that was asked for. */
async function logIn(page: Page, password = PASSWORD): Promise<void> {
  // Chromium gives the field the focus with a frame, after the page has loaded.
  await page.getByLabel('Password').and(page.locator(':focus')).waitFor()
  await page.keyboard.type(password)
  await page.keyboard.press('Enter')
  await page.getByLabel('Password').waitFor({ state: 'detached' })
  await page.waitForURL((url) => !url.pathname.startsWith('/oauth/'))
}

async function open(sidecar: TestSidecar, path: string): Promise<Page> {
  const page = await openPage(`${sidecar.url}${path}`, { ignoreHTTPSErrors: true, foreign: true })
  await logIn(page)
  expect(page.url()).toBe(`${sidecar.url}${path}`)
  return page
}

/** Reloads until the login page is shown: the file with the password is watched. */
async function expectLoginPage(page: Page): Promise<void> {
  await expect.poll(async () => (await page.reload())?.status()).toBe(401)
  await resting(page).getByLabel('Password').waitFor()
}

async function logOut(sidecar: TestSidecar, page: Page): Promise<void> {
  await page.goto(`${sidecar.url}/oauth/logout`)
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByText('You are logged out.').waitFor()
  expect(await page.context().cookies()).not.toContainEqual(
    expect.objectContaining({ name: '__Host-postern' }),
  )
}

it('H192 Syncthing: a page of a hundred files, a setting that is changed, events, a new password, a log-out', async () => {
  const sidecar = await startInFrontOf(await startSyncthing())
  const page = await open(sidecar, '/')
  // The name of the device comes with the settings. Before, the dialog does not open.
  await expect.poll(() => page.title()).toContain(' | Syncthing')
  // A click that comes while the page still draws opens nothing.
  const openSettings = async (): Promise<boolean> => {
    await page
      .getByText('Actions')
      .first()
      .click({ timeout: PATIENCE / 4 })
    const settings = page.getByText('Settings', { exact: true }).filter({ visible: true }).first()
    await settings.click({ timeout: PATIENCE / 4 })
    await page.locator('#DeviceName').fill('boiler', { timeout: PATIENCE / 4 })
    return true
  }
  await expect.poll(openSettings, { timeout: 3 * PATIENCE }).toBe(true)
  await page.locator('#settings').getByRole('button', { name: 'Save' }).click()
  await expect.poll(() => page.title()).toContain('boiler')
  await page.waitForResponse((response) => response.url().includes('/rest/events') && response.ok())
  expect(await sidecar.metric('postern_requests_total', { endpoint: 'browser' })).toBeGreaterThan(60)
  expect(await sidecar.metric('postern_rate_limited_total')).toBe(0)
  writeFileSync(sidecar.passwordFile, 'another\n')
  await expectLoginPage(page)
  await logIn(page, 'another')
  await expect.poll(() => page.title()).toContain('boiler')
  await logOut(sidecar, page)
})

it('H192 noVNC: a live view over a WebSocket, which ends with the password', async () => {
  const vnc = await startConsole()
  const sidecar = await startInFrontOf(vnc)
  const page = await open(sidecar, '/vnc_lite.html?path=websockify')
  const status = page.locator('#status')
  await status.getByText('Connected to').waitFor()
  const shown = (): Promise<unknown> =>
    page.evaluate(
      "Array.from(document.querySelector('canvas').getContext('2d').getImageData(300, 200, 1, 1).data)",
    )
  for (const color of [0xff0000, 0x2040c0]) {
    vnc.fill(color)
    await expect.poll(shown).toEqual([color >> 16, (color >> 8) & 255, color & 255, 255])
  }
  writeFileSync(sidecar.passwordFile, 'another\n')
  await status.getByText(/^(?:Disconnected|Something went wrong, connection is closed)$/).waitFor()
  await expectLoginPage(page)
})

/** A torrent of one file. */
const TORRENT = Buffer.from(
  `d4:infod6:lengthi5e4:name12:firmware.bin12:piece lengthi16384e6:pieces20:${'a'.repeat(20)}ee`,
)

it('H192 transmission: an upload, with a token of the device that each request carries', async () => {
  const sidecar = await startInFrontOf(await startTransmission())
  const page = await open(sidecar, '/transmission/web/')
  await page.getByTitle('Open Torrent').click()
  const file = { name: 'a.torrent', mimeType: 'application/x-bittorrent', buffer: TORRENT }
  await page.getByLabel('Please select a torrent file to upload:').setInputFiles(file)
  await page.locator('#torrent_auto_start').uncheck()
  await page.getByText('Upload', { exact: true }).click()
  await page.locator('#torrent_list').getByText('firmware.bin').waitFor()
  await logOut(sidecar, page)
})
