import { writeFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { operatingPage } from '../../deploy/build/operating.ts'
import { sentence } from '../../src/overview/alarm.ts'
import type { Alarm } from '../../src/overview/model.ts'
import { TROUBLES } from '../../src/record/troubles.ts'
import { expectFiring } from '../grafana/firing.ts'
import { readRules } from '../grafana/rules.ts'
import { makeCertificate } from '../support/certificate.ts'
import { type MovableClock, passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { readPage } from '../support/pages.ts'
import { startRedis } from '../support/redis.ts'
import { needs } from '../support/tools.ts'
import { type LogLine, prepareSite, type Serving, type Site } from './serve.ts'

type Name = keyof typeof TROUBLES

/** A sidecar that has a trouble. */
interface Scene {
  readonly site: Site
  readonly sidecar: Serving
  /** The text of `/metrics` before the trouble. */
  readonly before: string
  /** The clock of a sidecar in this process; without one, the sidecar is a process of its own. */
  readonly clock?: MovableClock
}

const DAY = 86_400_000

async function scrape({ adminUrl }: Serving): Promise<string> {
  return (await fetch(`${adminUrl}/metrics`)).text()
}

/** Makes each trouble happen. */
const SCENES: Readonly<Record<Name, () => Promise<Scene>>> = {
  async PosternDeviceDown() {
    const site = await prepareSite()
    const sidecar = await site.serve()
    const { access_token: token } = await sidecar.grant()
    expect(await sidecar.use(token)).toBe(200)
    const before = await scrape(sidecar)
    await site.device.stop()
    for (let i = 0; i < 3; i += 1) expect(await sidecar.use(token)).toBe(500)
    return { site, sidecar, before }
  },

  async PosternDeviceSlow() {
    const clock = stillClock()
    const device = await startDevice((_request, response) => clock.after(6_000, () => response.end('ok')))
    const site = await prepareSite({ device, config: { upstream: { max_in_flight: 64 } } })
    const sidecar = await site.serveHere({ clock })
    const { access_token: token } = await sidecar.grant()
    const before = await scrape(sidecar)
    const answers: Promise<number>[] = []
    for (let i = 1; i <= 20; i += 1) {
      answers.push(sidecar.use(token))
      await device.waitForRequests(i)
      await clock.advance(1_000)
    }
    await passUntil(clock, Promise.all(answers), 100)
    return { site, sidecar, before, clock }
  },

  async PosternDeviceBroke() {
    const clock = stillClock()
    const device = await startDevice((_request, response) => clock.after(5, () => response.end('ok')))
    let away: Promise<void> | undefined
    device.server.on('connection', () => {
      if (device.openConnections > 4) away ??= device.stop()
    })
    const site = await prepareSite({ device })
    const sidecar = await site.serveHere({ clock })
    const { access_token: token } = await sidecar.grant()
    const before = await scrape(sidecar)
    let asks = true
    const client = async (): Promise<void> => {
      while (asks) await sidecar.use(token)
    }
    const clients = Array.from({ length: 8 }, client)
    await passUntil(clock, sidecar.waitForLog(TROUBLES.PosternDeviceBroke.line))
    asks = false
    await passUntil(clock, Promise.all(clients))
    await away
    return { site, sidecar, before, clock }
  },

  async PosternPasswordGuessing() {
    const site = await prepareSite()
    const sidecar = await site.serve()
    const before = await scrape(sidecar)
    for (let i = 0; i < 25; i += 1) expect((await sidecar.login('wrong')).status).toBe(400)
    return { site, sidecar, before }
  },

  async PosternRateLimiting() {
    const clock = stillClock()
    const site = await prepareSite({ config: { limits: { api: { requests: 10 } } } })
    const sidecar = await site.serveHere({ clock })
    const before = await scrape(sidecar)
    for (let i = 0; i < 90; i += 1) await sidecar.request()
    return { site, sidecar, before, clock }
  },

  async PosternCertificateExpires() {
    const { certFile: cert, keyFile: key } = await makeCertificate('soon', {
      notBefore: new Date(Date.now() - 81 * DAY),
      notAfter: new Date(Date.now() + 9 * DAY),
    })
    const site = await prepareSite({ transport: 'tls', config: { listen: { tls: { cert, key } } } })
    const sidecar = await site.serve()
    return { site, sidecar, before: '' }
  },

  async PosternTokensUnsaved() {
    const site = await prepareSite()
    // The limit on the size of a file, in blocks of 512 bytes: as on a full disk, a write fails in the middle.
    const sidecar = await site.serve({ under: ['sh', '-c', 'ulimit -S -f 200; exec "$@"', 'sh'] })
    const before = await scrape(sidecar)
    // Past this number the file has no room for all tokens, also where it is written anew.
    for (let grants = 0; grants < 600; grants += 20)
      await Promise.all(Array.from({ length: 20 }, () => sidecar.grant()))
    return { site, sidecar, before }
  },

  async PosternTokenFileBroken() {
    const site = await prepareSite()
    const first = await site.serve()
    await first.grant()
    const before = await scrape(first)
    await first.stop()
    writeFileSync(join(site.stateDir, 'tokens.db'), 'not a database, '.repeat(1_000))
    return { site, sidecar: await site.serve(), before }
  },

  async PosternSharedStoreDown() {
    needs('redis-server')
    const redis = await startRedis()
    const site = await prepareSite({ config: { tokens: { store: `valkey://${redis.at}` } } })
    const sidecar = await site.serve()
    await sidecar.grant()
    const before = await scrape(sidecar)
    await redis.kill()
    return { site, sidecar, before }
  },

  async PosternReloadFailed() {
    const site = await prepareSite()
    const sidecar = await site.serve()
    const before = await scrape(sidecar)
    site.configure({ realm: '' })
    return { site, sidecar, before }
  },
}

/** The alarms in the first event of the live page. */
async function alarmsOfPage({ adminUrl }: Serving): Promise<readonly Alarm[]> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(`${adminUrl}/page/events`, { agent: false }, resolve).once('error', reject)
  })
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) {
    text += chunk
    const [, data] = /^event: start\n(?:.+\n)*?data: (.*)\n\n/m.exec(text) ?? []
    if (data !== undefined) return JSON.parse(data).condition.alarms
  }
  return expect.fail(`no event: ${text}`)
}

const NAMES = Object.keys(TROUBLES) as Name[] // these are its keys

it.each(NAMES)('H373 %s: log, live page, status and alert say what it is and what to do', async (name) => {
  const { site, sidecar, before, clock } = await SCENES[name]()
  const { line, remedy } = TROUBLES[name]
  const told = sentence(remedy)

  const logging = sidecar.waitForLog(line)
  const logged: LogLine = await (clock === undefined ? logging : passUntil(clock, logging, 1_000))
  expect(logged.level).toBeGreaterThanOrEqual(40)
  expect(logged.remedy).toBe(remedy)

  const alarms = await alarmsOfPage(sidecar)
  const alarm = alarms.find((each) => each.name === name) ?? expect.fail(JSON.stringify(alarms))
  expect(alarm.remedy.startsWith(told), alarm.remedy).toBe(true)

  const { stdout } = await site.postern('status')
  expect(stdout).toContain(alarm.what)
  expect(stdout).toContain(`${alarm.meaning} ${alarm.remedy} More: `)
  expect(stdout).toContain(`#${name.toLowerCase()}\n`)

  const rule = readRules().find(({ alert }) => alert === name)
  expect(rule?.annotations.remedy).toBe(told)
  needs('promtool')
  await expectFiring(name, before, await scrape(sidecar))
})

it('H373 docs/operating.md lists the troubles: run `npm run hardening` when this fails', () => {
  const page = readPage('docs/operating.md')
  expect(page).toBe(operatingPage(page))
})
