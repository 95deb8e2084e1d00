import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { loadPageFiles } from '../../src/admin/page-files.ts'
import { alarmsOf } from '../../src/overview/alarms.ts'
import type { Alarm, Condition, GrantRow, PageEvents, RequestRow } from '../../src/overview/model.ts'
import { closeLater } from '../support/cleanup.ts'
import { needs } from '../support/tools.ts'
import { DESKTOP, faultsOf, PHONE, useBrowser } from './browser.ts'
import { alarmOf, calm, secondOf } from './calm.ts'

const openPage = useBrowser()

type Handler = (res: ServerResponse, req: IncomingMessage) => void

/** The files of the page, and what a test answers below `/page/`. */
async function serve() {
  needs('chromium')
  const files = loadPageFiles()
  const viewers = new Set<ServerResponse>()
  function send<Name extends keyof PageEvents>(name: Name, data: PageEvents[Name]): void {
    for (const res of viewers) res.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`)
  }
  const answers: Record<string, Handler> = {
    events(res) {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' })
      viewers.add(res.on('close', () => viewers.delete(res)))
      const now = Date.now()
      send('start', {
        about: { run: 'a', version: '1', node: '26', machine: 'm', startedAt: now },
        ...{ now, mayRevoke: true, signedIn: false, points: [], timeline: [], condition: calm(now) },
      })
    },
    requests: (res) => json(res, 200, []),
  }
  const server = createServer((req, res) => {
    const [name = ''] = (req.url === '/' ? '/page/index.html' : (req.url ?? '')).slice(6).split('?')
    const { type = '', body } = files.get(name) ?? {}
    const answer = answers[name] ?? (() => res.writeHead(200, { 'Content-Type': type }).end(body))
    answer(res, req)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const timer = setInterval(() => send('point', secondOf()), 1_000)
  closeLater(() => {
    clearInterval(timer)
    server.close().closeAllConnections()
  })
  const { port } = server.address() as AddressInfo // it listens on TCP
  const drop = () => {
    for (const res of viewers) res.destroy()
  }
  return { url: `http://127.0.0.1:${port}/`, answers, send, drop, point: secondOf }
}

function json(res: ServerResponse, status: number, body: object): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
}

const statusOf = (page: Page, text: string) => page.locator('#status-text').getByText(text).waitFor()
const announced = (page: Page) => page.locator('#announcer p').allTextContents()

it('H157 the page says why there is no stream, gives up a silent attempt, and is readable meanwhile', async () => {
  const { url, answers, send, drop } = await serve()
  const { events = () => expect.fail() } = answers
  const page = await openPage(url, { bypassCSP: true })
  await statusOf(page, 'Ready')
  const alarms = [alarmOf('critical')]
  send('condition', { ...calm(Date.now()), ready: false, reasons: ['why'], enforce: false, alarms })
  await statusOf(page, 'Not ready: why')
  const off = { error: 'page_off', error_description: 'The page needs a password.' }
  answers.events = (res) => json(res, 403, off)
  drop()
  await statusOf(page, 'The sidecar refuses this page: The page needs a password.')
  await page.locator('main[data-stale] #alarm-list').waitFor()
  expect(await faultsOf(page)).toEqual([])
  answers.events = (res) => json(res, 503, { error: 'stopping' })
  await statusOf(page, 'The sidecar is stopping')
  answers.events = (res) => json(res, 503, { error: 'too_many_viewers' })
  await statusOf(page, 'Too many viewers')
  let attempts = 0
  answers.events = () => {
    attempts += 1
    if (attempts === 2) answers.events = events
  }
  await statusOf(page, 'The sidecar is stopped or unreachable')
  await statusOf(page, 'Ready')
  expect(attempts).toBe(2)
})

it('H157 an attempt that stays silent is given up, and the next one begins without a pause', async () => {
  const { url, answers } = await serve()
  let attempts = 0
  answers.events = () => {
    attempts += 1
  }
  // A page of its own: its clock stands still from now on.
  const page = await openPage('about:blank', { locale: 'en-GB' })
  await page.clock.install({ time: 0 })
  await page.clock.pauseAt(1_000)
  await page.goto(url)
  await expect.poll(() => attempts).toBe(1)
  await page.clock.runFor(5_000)
  await expect.poll(() => attempts).toBe(2)
})

it('H157 a list that cannot be read stays, and says that it may be old; equal ids are separate requests', async () => {
  const { url, answers, send, point } = await serve()
  const row = (time: number): RequestRow => ({
    ...{ id: 'twice', time, method: 'GET', path: `/${time}`, client: '192.0.2.1', status: 429 },
    ...{ refusal: 'rate-limited', duration: 1 },
  })
  let rows = [row(1), row(2)]
  answers.requests = (res) => json(res, 200, rows)
  const page = await openPage(url)
  const paths = page.locator('#requests code')
  await expect.poll(() => paths.allTextContents()).toEqual(['GET /1', 'GET /2'])
  rows = [row(3)]
  await expect
    .poll(() => {
      send('point', point({ refusals: { rate_limited: 1 } }))
      return paths.allTextContents()
    })
    .toEqual(['GET /3'])
  answers.requests = (res) => json(res, 500, {})
  const problem = page.locator('#requests-problem')
  await expect
    .poll(() => {
      send('point', point({ refusals: { rate_limited: 1 } }))
      return problem.textContent()
    })
    .toBe('This list may be old. The sidecar answered 500.')
  expect(await paths.allTextContents()).toEqual(['GET /3'])
  await page.locator('#requests button').click()
  await page.getByRole('dialog', { name: 'No explanation' }).getByText('The sidecar answered 500.').waitFor()
})

it('H158 an alarm that grows worse says so, and each announcement is read, also an equal one', async () => {
  const { url, send } = await serve()
  const page = await openPage(url)
  await statusOf(page, 'Ready')
  const raised = (alarm: Alarm, more: Partial<Condition> = {}) =>
    send('condition', { ...calm(Date.now()), alarms: [alarm], ...more })
  const ends = { key: 'certificate', since: Date.now() }
  raised(alarmOf('warning', { ...ends, what: 'The certificate expires' }))
  const alarm = page.locator('#alarm-list li')
  await alarm.getByText('Warning').waitFor()
  raised(alarmOf('critical', { ...ends, what: 'The certificate expired' }))
  await alarm.getByText('Critical').waitFor()
  await expect.poll(() => announced(page)).toContain('Critical: The certificate expired')
  raised(alarmOf('critical'), { ready: false, reasons: ['why'] })
  await page.locator('#alarm-list').getByText('seen since').waitFor()
  // The state line and the alarm change in the same frame.
  await expect
    .poll(async () => (await announced(page)).slice(-2))
    .toEqual(['Not ready: why', 'Critical: Not ready: why'])
})

it('H159 after a revocation the focus stays at the table, and the question fits', async () => {
  const { url, answers, send } = await serve()
  const grant = (id: string): GrantRow => ({ id, client: id, issuedAt: 0, expiresAt: 1e14, usedAt: null })
  answers.revoke = (res) => {
    json(res, 200, { revoked: 1 })
    send('grants', { total: 0, changed: [], removed: ['one', 'two'] })
  }
  const page = await openPage(url)
  await statusOf(page, 'Ready')
  const [row, focused] = [page.locator('#grant-rows tr'), page.locator('#grants-scroll:focus')]
  for (const [name, question] of [
    ['Revoke the login of one, one', 'The client has to log in'],
    ['Revoke all', 'Every client has to log in'],
  ] as const) {
    send('grants', { total: 1, changed: [grant('one')], removed: [] })
    await page.getByRole('button', { name, exact: true }).click()
    await page.locator('#confirm').getByText(question).waitFor()
    await page.getByRole('dialog', { name: /^Revoke the (login of one|only login)\?$/ }).waitFor()
    await page.getByRole('button', { name: 'Revoke', exact: true }).click()
    await expect.poll(() => row.count()).toBe(0)
    await focused.waitFor()
  }
  expect((await announced(page)).filter((text) => text === '1 login revoked')).toHaveLength(2)
})

it('H159 the focus stays at a login while others go and its age changes, and selected text stays selected', async () => {
  const { url, send } = await serve()
  const grant = (id: string): GrantRow => ({
    id,
    client: id,
    issuedAt: 0,
    expiresAt: 1e14,
    usedAt: Date.now(),
  })
  const page = await openPage(url)
  await statusOf(page, 'Ready')
  send('grants', { total: 2, changed: [grant('one'), grant('two')], removed: [] })
  const button = page.getByRole('button', { name: 'Revoke the login of two, two' })
  await button.focus()
  const client = page.locator('#limits code').first()
  await client.selectText()
  const [selected, used] = [await client.textContent(), page.locator('#grant-rows tr', { hasText: 'two' })]
  send('grants', { total: 1, changed: [], removed: ['one'] })
  await used.getByText(/^[1-9]\d* s$/).waitFor()
  expect(await page.locator('#grant-rows tr').count()).toBe(1)
  expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Revoke the login of two, two')
  expect(await page.evaluate('String(getSelection())')).toBe(selected)
})

it('H330 the focus comes back from a dialog to its row, although the lists changed meanwhile', async () => {
  const { url, answers, send, point } = await serve()
  const grant = (id: string, usedAt: number): GrantRow => ({
    id,
    client: id,
    issuedAt: 0,
    expiresAt: 1e14,
    usedAt,
  })
  const row = (path: string): RequestRow => ({
    ...{ id: 'a', time: 1, method: 'GET', path, client: '192.0.2.1', status: 429 },
    ...{ refusal: 'rate-limited', duration: 1 },
  })
  let asked = 0
  answers.requests = (res, req) => {
    if (req.url?.includes('id=')) return json(res, 500, {})
    asked += 1
    json(res, 200, [row(`/${asked}`)])
  }
  const page = await openPage(url)
  await statusOf(page, 'Ready')
  const now = Date.now()
  send('grants', { total: 2, changed: [grant('one', now), grant('two', now - 60_000)], removed: [] })
  const two = page.getByRole('button', { name: 'Revoke the login of two, two' })
  await two.focus()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog', { name: 'Revoke the login of two?' }).waitFor()
  // Its login was used last, so that it would be the first.
  send('grants', { total: 3, changed: [grant('two', now + 60_000), grant('three', now)], removed: [] })
  await expect.poll(() => page.locator('#grant-rows tr').count()).toBe(3)
  await page.keyboard.press('Escape')
  expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Revoke the login of two, two')

  await page.locator('#requests button').focus()
  await page.keyboard.press('Enter')
  const explanation = page.getByRole('dialog', { name: 'No explanation' })
  await explanation.waitFor()
  const before = asked
  const time = page.locator('#legend-traffic .when')
  const seconds = new Set<string | null>()
  await expect
    .poll(async () => {
      send('point', point({ refusals: { rate_limited: 1 } }))
      return seconds.add(await time.textContent()).size
    })
    .toBeGreaterThan(4)
  expect(asked).toBe(before)
  await page.keyboard.press('Escape')
  await explanation.waitFor({ state: 'hidden' })
  expect(await page.evaluate('document.activeElement.className')).toBe('request')
})

it('H158 an explanation stays while the pointer is on it, and a touch elsewhere closes it', async () => {
  const { url } = await serve()
  const page = await openPage(url)
  const tooltip = page.getByRole('tooltip')
  await page.getByRole('button', { name: 'Connections' }).hover()
  await tooltip.getByText('postern_connections').hover()
  // Longer than the pointer may take from the figure to its explanation.
  await page.evaluate(() => new Promise((done) => setTimeout(done, 500)))
  expect(await tooltip.isVisible()).toBe(true)
  await page.mouse.click(2, 2)
  await expect.poll(() => tooltip.isVisible()).toBe(false)
})

it('H158 while the gate only observes, the page says what would be refused', async () => {
  const { url, send, point } = await serve()
  const page = await openPage(url)
  await statusOf(page, 'Ready')
  send('condition', { ...calm(Date.now()), enforce: false })
  send('point', point({ requests: 12_345, refusals: { unauthorized: 2 } }))
  await page.getByRole('button', { name: 'Would be refused/s' }).waitFor()
  await page.locator('#limits').getByText('118 would be refused, free in').waitFor()
  await page.locator('#summary-traffic').getByText('; 2 would be refused.').waitFor()
  const levels = page.locator('#chart-traffic .levels li')
  await expect.poll(() => levels.allTextContents()).toEqual(['0', '5,000', '10,000', '15,000'])
})

/** Long addresses everywhere, a hundred clients at the limit, a device that fails, and latencies over five decades. */
async function serveTrouble() {
  const served = await serve()
  const now = Date.now()
  const { limits, services, ...rest } = calm(now)
  const address = (i: number) => `2001:db8:85a3:1234:5678:8a2e:370:${(7_000 + i).toString(16)}`
  const usedUp = Array.from({ length: 100 }, (_, i) => ({
    key: `2001:db8:85a3:${(7_000 + i).toString(16)}::/64`,
    until: now + 40_000,
    refused: 500 - i,
  }))
  const down = { up: false, since: now, failure: 'http_protocol_error', failedAt: now }
  const row = { id: 'a', time: now, method: 'GET', path: '/', status: 429, refusal: 'rate-limited' } as const
  served.answers.requests = (res) => json(res, 200, [{ ...row, client: address(1), duration: 1 }])
  const show = () => {
    const facts = {
      ...rest,
      services: services.map((service) => ({ ...service, ...(service.route === null ? down : {}) })),
      limits: { ...limits, api: { ...limits.api, usedUp, usedUpCount: 250 } },
    }
    served.send('condition', { ...facts, alarms: alarmsOf(facts, [], now) })
    served.send('grants', {
      total: 2,
      removed: [],
      changed: [1, 2].map((i) => ({
        id: `monitor.0123456789abcde${i}`,
        client: address(i),
        issuedAt: now - 16 * 60_000,
        expiresAt: now + 1e9,
        usedAt: now - 16 * 60_000,
      })),
    })
    const [client, device] = [
      { p50: 0.03, p99: 20 },
      { p50: 0.02, p99: 2_000 },
    ]
    served.send('point', secondOf({ requests: 40, serverErrors: 30, client, device }))
  }
  return { ...served, show }
}

interface Layout {
  readonly [key: string]: unknown
  readonly limits: number
}

/** A script for the page. */
const LAYOUT = `(() => {
  const all = (selector) => [...document.querySelectorAll(selector)].filter((each) => each.checkVisibility())
  const box = (each) => each.getBoundingClientRect()
  const text = (each) => each.textContent
  const ink = (each) => {
    const range = document.createRange()
    range.selectNodeContents(each)
    return box(range)
  }
  const GAP = 4
  const touch = (a, b) =>
    a.left < b.right + GAP && b.left < a.right + GAP && a.top < b.bottom && b.top < a.bottom
  const neighbours = all('#grants tr').flatMap((row) =>
    [...row.cells].map(ink).flatMap((cell, i, cells) => cells.slice(i + 1).map((other) => [row, cell, other])))
  const canvas = document.createElement('canvas').getContext('2d')
  const isCut = (input) => {
    const style = getComputedStyle(input)
    canvas.font = style.font
    const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)
    return canvas.measureText(input.placeholder).width > room
  }
  return {
    collide: neighbours.filter(([, a, b]) => a.width && b.width && touch(a, b)).map(([row]) => text(row)),
    cut: all('input[placeholder]').filter(isCut).map((each) => each.placeholder),
    thin: all('.danger, .act button').filter((each) => box(each).height < 44).map(text),
    wide: all('main .scroll').filter((each) => each.scrollWidth > each.clientWidth).map(text),
    small: all('main button, summary, label').filter((each) => box(each).height < 24).map(text),
    limits: box(all('#limits')[0]).height,
    tops: new Set(all('.canvas').map((each) => box(each).top)).size,
    heights: new Set(all('.plot').map((each) => box(each).height)).size,
  }
})()`

it('H158 H232 with long addresses and a hundred clients at the limit, nothing is clipped, collides or is too small for a finger', async () => {
  const { url, show } = await serveTrouble()
  const page = await openPage(url, { bypassCSP: true })
  await statusOf(page, 'Ready')
  show()
  await statusOf(page, 'Device down')
  expect(await page.title()).toBe('Device down – m')
  await page.getByText('75 %').waitFor()
  await page.locator('#requests button').waitFor()
  await page.getByText('250 at the limit, the 100 most refused here').waitFor()
  for (const viewport of [PHONE, DESKTOP]) {
    await page.setViewportSize(viewport)
    const { wide, small, collide, cut, thin, limits, tops, heights } = await page.evaluate<Layout>(LAYOUT)
    const faults = { wide, small, collide, cut, ...(viewport === PHONE ? { thin } : {}) }
    const none = Object.fromEntries(Object.keys(faults).map((each) => [each, []]))
    expect(faults, `${viewport.width} px`).toEqual(none)
    expect(limits).toBeLessThan(0.35 * viewport.height)
    if (viewport === DESKTOP) expect({ tops, heights }).toEqual({ tops: 1, heights: 1 })
  }
  expect(await faultsOf(page)).toEqual([])
})

it('H158 an alarm links its section of docs/alerts.md, which the sidecar serves', async () => {
  const { url, show } = await serveTrouble()
  const page = await openPage(url)
  await statusOf(page, 'Ready')
  show()
  const opened = page.waitForEvent('popup')
  await page.getByRole('link', { name: 'More: PosternDeviceDown' }).click()
  const section = await opened
  await section.locator('h3:target', { hasText: 'PosternDeviceDown' }).waitFor()
  await section.getByText('postern check --quiet').first().waitFor()
})
