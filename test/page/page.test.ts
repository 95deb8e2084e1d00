import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { type PageServerOptions, startPageServer } from '../support/page-server.ts'
import { startSidecar } from '../support/sidecar.ts'
import { isInstalled, needs } from '../support/tools.ts'
import { chromiumPath } from './browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PHONE = { width: 360, height: 800 }
const DESKTOP = { width: 1440, height: 1000 }

let browser: Browser | undefined

beforeAll(async () => {
  // Chromium's own sandbox does not start as root; the pages of these tests are the project's.
  if (isInstalled('chromium'))
    browser = await chromium.launch({ executablePath: chromiumPath(), args: ['--no-sandbox'] })
})

afterAll(() => browser?.close())

interface Opened {
  readonly page: Page
  /** What the page wrote to the console, errors and violations of the CSP included. */
  readonly console: string[]
}

async function openPage(url: string, options: BrowserContextOptions = {}): Promise<Opened> {
  needs('chromium')
  const context = await (browser ?? expect.fail('beforeAll starts Chromium')).newContext(options)
  closeLater(() => context.close())
  const page = await context.newPage()
  const lines: string[] = []
  page.on('console', (message) => lines.push(message.text()))
  page.on('pageerror', (error) => lines.push(error.message))
  await page.goto(url)
  return { page, console: lines }
}

const statusOf = (page: Page) => page.locator('#status-text')

async function openFake(options: PageServerOptions = {}, view: BrowserContextOptions = {}) {
  needs('chromium')
  const server = await startPageServer(options)
  const opened = await openPage(server.url, view)
  await statusOf(opened.page).getByText('Ready', { exact: true }).waitFor()
  return { server, ...opened }
}

it('H156 the values move without reloading, and the console stays empty', async () => {
  const { page, console } = await openFake()
  const time = page.locator('#legend-traffic .when')
  const seen = new Set<string | null>()
  await expect.poll(async () => seen.add(await time.textContent()).size).toBeGreaterThan(2)
  expect(await page.locator('#now-requests').textContent()).toMatch(/^\d+$/)
  expect(await page.locator('#summary-traffic').textContent()).toMatch(/^\d+ requests a second on average/)
  expect(await page.locator('.uplot canvas').count()).toBe(3)
  expect(console).toEqual([])
})

it('H156 H159 a running sidecar: its refusals appear and are explained, and a login is revoked', async () => {
  needs('chromium')
  const sidecar = await startSidecar({ documentedLimits: true })
  const { page, console } = await openPage(`${sidecar.adminUrl}/`)
  await statusOf(page).getByText('Ready', { exact: true }).waitFor()
  const token = await sidecar.token()
  for (let i = 0; i < 65; i++) await sidecar.request({ path: `/api/${i}`, token })
  await page.locator('#limits').getByText('5 refused, free in').waitFor()
  await expect.poll(() => page.locator('#summary-traffic').textContent()).toMatch(/; 5 refused\.$/)
  await page.getByRole('button', { name: 'GET /api/64' }).click()
  await page.getByRole('dialog', { name: 'GET /api/64' }).getByText('rate-limited').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Revoke all' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('status').getByText('1 login revoked').waitFor()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(0)
  expect(console).toEqual([])
})

it('H157 a stopped sidecar shows as such with its last data, and the stream heals after a restart', async () => {
  const { server, page, console } = await openFake({ grants: 3 })
  const before = await page.locator('#about').textContent()
  await server.stop()
  await statusOf(page).getByText('The sidecar is stopped or unreachable since').waitFor()
  expect(await page.locator('main[data-stale]').count()).toBe(1)
  expect(await page.locator('#grant-rows tr').count()).toBe(3)
  expect(await page.locator('#about').textContent()).toContain(before?.slice(0, 20))
  await startPageServer({ port: server.port, grants: 2 })
  await statusOf(page).getByText('Ready', { exact: true }).waitFor()
  await page.locator('#timeline').getByText('the sidecar was restarted').waitFor()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(2)
  expect(await page.locator('main[data-stale]').count()).toBe(0)
  // Chromium itself writes a line for each request that fails.
  expect(console.filter((line) => !/ERR_CONNECTION_|ERR_INCOMPLETE_CHUNKED/.test(line))).toEqual([])
})

it('H157 after an absence the page is right at once, without a reload', async () => {
  const { server, page } = await openFake()
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('Page.setWebLifecycleState', { state: 'frozen' })
  server.drop()
  server.change({ ready: false, reasons: ['the device does not respond'] })
  await devtools.send('Page.setWebLifecycleState', { state: 'active' })
  await statusOf(page).getByText('Not ready: the device does not respond').waitFor({ timeout: 5_000 })
  await page.locator('#alarm-list').getByText('Not ready: the device does not respond').waitFor()
})

it('H157 a page that may no longer watch shows the login page, and one too many says so', async () => {
  const { server, page } = await openFake()
  server.status = 503
  server.drop()
  await statusOf(page).getByText('Too many viewers').waitFor()
  server.status = 401
  await page.getByLabel('Password of this page').waitFor()
})

it('H158 figures explain themselves by keyboard and on touch', async () => {
  const { page } = await openFake({}, { viewport: PHONE, hasTouch: true })
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

it('H158 a refused request opens its explanation by keyboard, and Escape closes it', async () => {
  const { page } = await openFake()
  const request = page.locator('#requests button').first()
  await request.focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'GET /api/channels/0/state' })
  await dialog.getByText('429 with Retry-After: 41').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  await page.getByLabel('Id of a request').fill('unknown')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Not remembered' }).waitFor()
})

it('H159 a login is revoked by keyboard, after a question', async () => {
  const { server, page } = await openFake({ grants: 3 })
  await page.getByLabel('Filter the logins').fill('192.0.2.20')
  const button = page.getByRole('button', { name: 'Revoke the login of 192.0.2.20' })
  const id = (await button.getAttribute('aria-label'))?.split(', ')[1]
  await button.focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Revoke the login of 192.0.2.20?' })
  await dialog.getByText('The client has to log in with the password again').waitFor()
  expect(server.revocations).toEqual([])
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'hidden' })
  expect(server.revocations).toEqual([JSON.stringify({ grant: id })])
  await page.getByRole('status').getByText('1 login revoked').waitFor()
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(0)
})

it('H159 a thousand logins stay smooth: the page works less than 100 ms of a second', async () => {
  const { page } = await openFake({ grants: 1_000 })
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(1_000)
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
})

const VIEWS = [
  ['a phone, dark', { colorScheme: 'dark', viewport: PHONE }],
  ['a desktop, light', { colorScheme: 'light', viewport: DESKTOP }],
] as const

async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    // @ts-expect-error: `axe` is defined by the script above
    const { violations } = await axe.run()
    return violations.map(
      ({ id, nodes }: { id: string; nodes: { html: string }[] }) => `${id}: ${nodes[0]?.html}`,
    )
  })
}

it.each(VIEWS)('H158 axe finds nothing: %s', async (_, view) => {
  const condition = { enforce: false, ready: true, store: { up: false } }
  const server = await startPageServer({ condition })
  const { page } = await openPage(server.url, { ...view, bypassCSP: true })
  await statusOf(page).getByText('Observing only').waitFor()
  await page.locator('#requests button').first().waitFor()
  await page.getByText('As a table').first().click()
  expect(await page.locator('#table-traffic tbody tr').count()).toBeGreaterThan(4)
  expect(await faultsOf(page)).toEqual([])
  await page.locator('#requests button').first().click()
  expect(await faultsOf(page)).toEqual([])
  server.status = 401
  await page.goto(server.url)
  await page.getByLabel('Password of this page').waitFor()
  expect(await faultsOf(page)).toEqual([])
})
