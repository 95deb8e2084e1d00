import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { realClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { logInAs, makeNames, PAGE_PASSWORD, pagePasswordFile } from '../support/passwords.ts'
import { unusedPort } from '../support/raw.ts'
import {
  FORM_TYPE,
  PASSWORD,
  PASSWORD_GRANT,
  type SidecarOptions,
  startSidecar as startOnClock,
  type TestSidecar,
} from '../support/sidecar.ts'
import { DESKTOP, faultsOf, PHONE, useBrowser } from './browser.ts'

const openPage = useBrowser()

/** The browser has the time of this machine, and so has the sidecar. */
const startSidecar = (options: SidecarOptions = {}): Promise<TestSidecar> =>
  startOnClock({ clock: realClock(), ...options })

const statusOf = (page: Page) => page.locator('#status-text')
const ready = (page: Page) => statusOf(page).getByText('Ready', { exact: true }).waitFor()
const rowsOf = (page: Page) => expect.poll(() => page.locator('#grant-rows tr').count())

/** Sixty requests in a window that is still open when a page has shown it. */
const SIXTY = { api: { requests: 60, window: '1h' } }

/** A device that takes its time: 10 ms. */
const unhurried = () =>
  startDevice((_, response) => {
    setTimeout(() => response.end('from the device'), 10)
  })

/** Sends requests, one after the other, until the test ends. */
function keepSending(sidecar: TestSidecar, tokens: readonly string[]): void {
  let isOver = false
  async function send(): Promise<void> {
    const connection = await sidecar.connect()
    for (let i = 0; !isOver; i++) {
      const Authorization = `Bearer ${tokens[i % tokens.length]}`
      await connection.send({ path: `/api/${i}`, fields: ['Authorization', Authorization] })
    }
    connection.close()
  }
  const sending = send()
  closeLater(() => {
    isOver = true
    return sending
  })
}

it('H156 the values move under traffic without reloading, and follow the clock of the sidecar', async () => {
  const sidecar = await startSidecar({ device: await unhurried() })
  const page = await openPage(`${sidecar.adminUrl}/`)
  await ready(page)
  keepSending(sidecar, [await sidecar.token()])
  const seen = new Set<string | null>()
  const time = page.locator('#legend-traffic .when')
  await expect.poll(async () => seen.add(await time.textContent()).size).toBeGreaterThan(3)
  await expect.poll(async () => Number(await page.locator('#now-requests').textContent())).toBeGreaterThan(0)
  const summary = await page.locator('#summary-traffic').textContent()
  expect(summary).toMatch(/^[\d.]+ requests a second on average, [\d.]+ at most; 0 refused\.$/)
  expect(await page.locator('#now-device').textContent()).toMatch(/^[\d.]+ ms$/)
  // A busy machine may leave out a second, which begins another piece.
  await expect
    .poll(() => page.locator('#chart-traffic path.area').last().getAttribute('d'))
    .toMatch(/M[\d.]+ 150V[\d.]+L/)
  sidecar.clock.jumpWall(5 * 3_600_000)
  await page.locator('#about').getByText('up 5 h').waitFor()
})

it('H156 H158 H159 refused requests are explained and logins revoked, by keyboard', async () => {
  const config = { admin: { password_file: pagePasswordFile() }, limits: SIXTY }
  const sidecar = await startSidecar({ config })
  const page = await openPage(`${sidecar.adminUrl}/`)
  await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
  await page.keyboard.press('Enter')
  await ready(page)
  expect(await page.locator('#revoke-note').isVisible()).toBe(false)
  for (const from of ['127.0.0.2', '127.0.0.3'])
    await sidecar.postToken({ grant_type: 'password', password: 'wrong' }, { from })
  const token = await sidecar.token()
  for (let i = 0; i < 65; i++) await sidecar.request({ path: `/api/${i}`, token })
  await page.locator('#limits').getByText('5 refused, free in').waitFor()
  await expect.poll(() => page.locator('#summary-traffic').textContent()).toMatch(/; 7 refused\.$/)

  await page.getByRole('button', { name: 'GET /api/64' }).focus()
  await page.keyboard.press('Enter')
  const explanation = page.getByRole('dialog', { name: 'GET /api/64' })
  await explanation.getByText('rate-limited').waitFor()
  await page.keyboard.press('Escape')
  await explanation.waitFor({ state: 'hidden' })
  await page.getByLabel('Id of a request').fill('unknown')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Not remembered' }).waitFor()
  await page.keyboard.press('Escape')

  const [, other] = await Promise.all([sidecar.grant(), loginFrom(sidecar, '127.0.0.9')])
  await rowsOf(page).toBe(3)
  await page.getByLabel('Filter the logins').fill('0.0.9')
  await page.getByRole('button', { name: 'Revoke the login of 127.0.0.9' }).focus()
  await page.keyboard.press('Enter')
  const question = page.getByRole('dialog', { name: 'Revoke the login of 127.0.0.9?' })
  await question.getByText('The client has to log in with the password again').waitFor()
  await question.getByText(/^Its id is [\da-f]{16}\. It is \d+ s old, and not used/).waitFor()
  const ask = () => sidecar.request({ token: other, from: '127.0.0.9' })
  expect((await ask()).status).toBe(200)
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await question.waitFor({ state: 'hidden' })
  expect((await ask()).status).toBe(401)
  await page.getByRole('status').getByText('1 login revoked').waitFor()
  await rowsOf(page).toBe(0)
  await page.getByLabel('Filter the logins').fill('')
  await rowsOf(page).toBe(2)
  await page.getByRole('button', { name: 'Revoke all' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('status').getByText('2 logins revoked').waitFor()
  await rowsOf(page).toBe(0)
})

async function loginFrom(sidecar: TestSidecar, from: string): Promise<string> {
  const password = PASSWORD
  const response = await sidecar.postToken({ grant_type: 'password', password }, { from })
  return String(response.json().access_token)
}

it('H157 a stopped sidecar shows as such with its last data, and the page goes on after a restart', async () => {
  const device = await startDevice()
  const config = { admin: { address: `127.0.0.1:${await unusedPort()}` } }
  const first = await startSidecar({ device, config })
  for (let i = 0; i < 3; i++) await first.grant()
  const page = await openPage(`${first.adminUrl}/`)
  await ready(page)
  await rowsOf(page).toBe(3)
  await first.stop()
  await statusOf(page).getByText('The sidecar is stopped or unreachable since').waitFor()
  expect(await page.locator('main[data-stale]').count()).toBe(1)
  expect(await page.locator('#grant-rows tr').count()).toBe(3)
  await startSidecar({ device, config })
  await ready(page)
  await page.locator('#timeline').getByText('the sidecar was restarted').waitFor()
  await rowsOf(page).toBe(0)
  expect(await page.locator('main[data-stale]').count()).toBe(0)
})

it('H157 H158 after an absence the page is right at once, and its alarm ends with the fault', async () => {
  const device = await startDevice()
  const admin = { address: `127.0.0.1:${await unusedPort()}` }
  const config = { admin, upstream: { health: { path: '/', interval: '100ms' } } }
  const first = await startSidecar({ device, config })
  const page = await openPage(`${first.adminUrl}/`)
  await ready(page)
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
  await device.stop()
  await first.stop()
  const second = await startSidecar({ device, config })
  await expect.poll(() => second.overview.condition().ready).toBe(false)
  await devtools.send('Page.setWebLifecycleState', { state: 'active' })
  await statusOf(page).getByText('Device down. Not ready: ').waitFor()
  const alarm = page.locator('#alarm-list li', { hasText: ': connection refused' })
  await alarm.getByText('upstream.url').waitFor()
  await alarm.getByText(/since \d\d:\d\d:\d\d/).waitFor()
  await startDevice(undefined, { port: Number(new URL(device.url).port) })
  await page.locator('#alarms').waitFor({ state: 'hidden' })
  await ready(page)
})

it('H157 one page too many says so, and gets the place that becomes free', async () => {
  const { adminUrl } = await startSidecar()
  const viewers = Array.from({ length: 16 }, () => get(`${adminUrl}/page/events`))
  await Promise.all(viewers.map((viewer) => once(viewer, 'response')))
  for (const viewer of viewers) closeLater(() => void viewer.on('error', () => {}).destroy())
  const page = await openPage(`${adminUrl}/`)
  await statusOf(page).getByText('Too many viewers').waitFor()
  viewers[7]?.destroy()
  await ready(page)
})

it('H152 H157 the page asks for its password, and for the new one when that has changed', async () => {
  const file = join(temporaryDirectory(), 'page-password')
  const setPassword = (password: string) => writeFileSync(file, `${password}\n`, { mode: 0o600 })
  setPassword('the first')
  const { adminUrl } = await startSidecar({ config: { admin: { password_file: file } } })
  const page = await openPage(`${adminUrl}/`, { bypassCSP: true, viewport: PHONE, colorScheme: 'dark' })
  const password = page.getByLabel('Password of this page')
  const signIn = async (with_: string) => {
    await password.fill(with_)
    await page.keyboard.press('Enter')
  }
  expect(await faultsOf(page)).toEqual([])
  await signIn('wrong')
  await page.getByText('Wrong password.').waitFor()
  await page.emulateMedia({ colorScheme: 'light' })
  expect(await faultsOf(page)).toEqual([])
  await signIn('the first')
  await ready(page)
  setPassword('the second')
  await password.waitFor()
  await signIn('the second')
  await ready(page)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await password.waitFor()
  await page.goto(`${adminUrl}/`)
  await password.waitFor()
})

it('H159 H197 each login shows the name of its password, by which it is found and revoked', async () => {
  const names = makeNames({ admin: undefined, monitor: 'read' })
  const config = { ...names.config, admin: { password_file: pagePasswordFile() } }
  const sidecar = await startSidecar({ config })
  const page = await openPage(`${sidecar.adminUrl}/`)
  await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
  await page.keyboard.press('Enter')
  await ready(page)
  const [admin, monitor] = [await logInAs(sidecar, 'admin'), await logInAs(sidecar, 'monitor')]
  await rowsOf(page).toBe(2)
  await page.getByLabel('Filter the logins').fill('monitor')
  await rowsOf(page).toBe(1)
  expect(await page.locator('#grant-rows th').textContent()).toMatch(/^127\.0\.0\.1 monitor\.[\da-f]{16}$/)
  await page.locator('#grant-rows button').click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('status').getByText('1 login revoked').waitFor()
  expect((await sidecar.request({ token: monitor.access_token })).status).toBe(401)
  expect((await sidecar.request({ token: admin.access_token })).status).toBe(200)
})

it('H153 a page without a password lists the logins, revokes none, and says what it takes', async () => {
  const sidecar = await startSidecar()
  await sidecar.grant()
  const page = await openPage(`${sidecar.adminUrl}/`, { bypassCSP: true, viewport: PHONE })
  await ready(page)
  await rowsOf(page).toBe(1)
  await page.getByText('Revoking here needs a password of this page: postern hash-password > FILE').waitFor()
  expect(await page.getByRole('button', { name: 'Revoke' }).count()).toBe(0)
  expect(await page.locator('#grants .act').filter({ visible: true }).count()).toBe(0)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
  expect(await faultsOf(page)).toEqual([])
})

it('H153 a page that is off says what turns it on', async () => {
  const { adminUrl } = await startSidecar({ config: { admin: { address: '0.0.0.0:0' } } })
  const page = await openPage(`${adminUrl.replace('0.0.0.0', '127.0.0.1')}/`)
  await page.getByText('Set admin.password_file to a file with one').waitFor()
})

it('H158 figures explain themselves by keyboard and on touch', async () => {
  const { adminUrl } = await startSidecar()
  const page = await openPage(`${adminUrl}/`, { viewport: PHONE, hasTouch: true })
  await ready(page)
  const bubble = page.getByRole('tooltip')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to the figures')
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  await bubble.getByText('postern_requests_total').waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => bubble.isVisible()).toBe(false)
  await page.getByRole('button', { name: 'Waiting' }).tap()
  await bubble.getByText('upstream.queue.size').waitFor()
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width)
})

it('H159 a thousand logins in use stay smooth: the page works less than 100 ms of a second', async () => {
  const sidecar = await startSidecar({ device: await unhurried(), config: { tokens: { capacity: 3_000 } } })
  const tokens: string[] = []
  const connection = await sidecar.connect()
  for (let i = 0; i < 1_000; i++) {
    const login = {
      method: 'POST',
      path: '/oauth/token',
      fields: ['Content-Type', FORM_TYPE],
      body: PASSWORD_GRANT,
    }
    tokens.push(String((await connection.send(login)).json().access_token))
  }
  const page = await openPage(`${sidecar.adminUrl}/`)
  const listed = page.locator('#grants-total')
  await expect.poll(() => listed.textContent()).toBe('1,000')
  keepSending(sidecar, tokens)
  const devtools = await page.context().newCDPSession(page)
  // Thread time, so that other work of the machine does not count.
  await devtools.send('Performance.enable', { timeDomain: 'threadTicks' })
  const worked = async () => {
    const { metrics } = await devtools.send('Performance.getMetrics')
    const value = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? 0
    return { at: value('Timestamp'), busy: value('TaskDuration') }
  }
  const time = page.locator('#legend-traffic .when')
  const pass = async (count: number) => {
    const seconds = new Set([await time.textContent()])
    await expect
      .poll(async () => seconds.add(await time.textContent()).size, { interval: 400 })
      .toBeGreaterThan(count)
  }
  await pass(2) // the start is over
  const before = await worked()
  await pass(4)
  const after = await worked()
  expect((after.busy - before.busy) / (after.at - before.at)).toBeLessThan(0.1)
  const table = page.getByRole('region', { name: 'Table of the logins' })
  for (const rows of [80, 120]) {
    await table.evaluate((element) => element.scrollTo(0, element.scrollHeight))
    await rowsOf(page).toBe(rows)
  }
})

it('H231 a login is found and revoked that is not among the 1,000 that the page lists', async () => {
  const config = { admin: { password_file: pagePasswordFile() }, tokens: { capacity: 3_000 } }
  const sidecar = await startSidecar({ device: await unhurried(), config })
  const token = await loginFrom(sidecar, '127.0.0.77')
  const connection = await sidecar.connect()
  const login = { method: 'POST', path: '/oauth/token', fields: ['Content-Type', FORM_TYPE] }
  for (let i = 0; i < 1_000; i++) await connection.send({ ...login, body: PASSWORD_GRANT })
  const page = await openPage(`${sidecar.adminUrl}/`)
  await page.getByLabel('Password of this page').fill(PAGE_PASSWORD)
  await page.keyboard.press('Enter')
  const total = page.locator('#grants-total')
  await expect.poll(() => total.textContent()).toBe('1,000 of 1,001')
  await page.getByLabel('Filter the logins').fill('0.0.77')
  await expect.poll(() => total.textContent()).toBe('1 of 1,001')
  await page.getByRole('button', { name: 'Revoke the login of 127.0.0.77' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await rowsOf(page).toBe(0)
  expect((await sidecar.request({ token, from: '127.0.0.77' })).status).toBe(401)
})

it('H158 axe finds nothing: on a phone and a desktop, light and dark, with an alarm, an explanation and a dialog', async () => {
  const config = { limits: SIXTY, upstream: { health: { path: '/', interval: '100ms' } } }
  const sidecar = await startSidecar({ config })
  const token = await sidecar.token()
  for (let i = 0; i < 61; i++) await sidecar.request({ path: `/api/${i}`, token })
  await sidecar.device.stop()
  const page = await openPage(`${sidecar.adminUrl}/`, { bypassCSP: true })
  await page.locator('#alarm-list li').first().waitFor()
  await page.locator('#limits').getByText('1 refused, free in').waitFor()
  const refused = page.getByRole('button', { name: 'GET /api/60' })
  await refused.waitFor()
  const dialog = page.getByRole('dialog', { name: 'GET /api/60' })
  await page.getByText('As a table').first().click()
  await page.locator('#table-traffic tbody tr').first().waitFor()
  for (const view of [PHONE, DESKTOP]) {
    await page.setViewportSize(view)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.getByRole('button', { name: 'Waiting' }).hover() // opens its explanation
      expect(await faultsOf(page), `${view.width} px, ${colorScheme}`).toEqual([])
      await refused.click()
      await dialog.waitFor()
      expect(await faultsOf(page), `${view.width} px, ${colorScheme}, dialog`).toEqual([])
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'hidden' })
    }
  }
})
