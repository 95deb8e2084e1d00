import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { control } from '../../src/commands/control.ts'
import { statusCommand } from '../../src/commands/status.ts'
import { SetupError } from '../../src/system/setup-error.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'

/** A state folder with a control socket that responds so. */
async function controlled(respond: RequestListener): Promise<string> {
  const stateDir = temporaryDirectory()
  const server = createServer(respond).listen(join(stateDir, 'control.sock'))
  closeLater(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return stateDir
}

const failure = (stateDir: string, limit?: number): Promise<unknown> =>
  control(stateDir, { method: 'GET', path: '/status' }, limit).then(
    () => expect.fail('there is a response'),
    (error: unknown) => error,
  )

it.each(['<html>', '', 'null', '7'])('a response of %j is not one of Postern', async (body) => {
  const stateDir = await controlled((_, response) => void response.end(body))
  const error = await failure(stateDir)
  expect(error).toBeInstanceOf(SetupError)
  expect(error).toMatchObject({
    message: `${stateDir}/control.sock does not answer like Postern`,
    exitCode: 1,
  })
})

it('a response that breaks off is reported with the socket', async () => {
  const stateDir = await controlled((_, response) => {
    response.writeHead(200, { 'Content-Length': '9' })
    response.write('{', () => response.destroy())
  })
  expect(await failure(stateDir)).toMatchObject({
    message: `cannot talk to ${stateDir}/control.sock: aborted`,
  })
})

it.each<readonly [string, RequestListener]>([
  ['nothing', () => {}],
  ['only a head', (_, response) => response.writeHead(200).flushHeaders()],
])('a sidecar that sends %s is reported after the limit', async (_what, respond) => {
  const stateDir = await controlled(respond)
  expect(await failure(stateDir, 100)).toMatchObject({
    message: `the sidecar on ${stateDir} did not respond within 0.1 seconds`,
  })
})

/** What `postern status` prints for a sidecar that answers so, and how it ends. */
async function printed(status: object, json = false, isTTY = true, pages?: string) {
  const stateDir = await controlled((_, response) => void response.end(JSON.stringify(status)))
  const sets = ['upstream.url=http://127.0.0.1', 'password.file=/password', `state_dir=${stateDir}`]
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const ended = await statusCommand(
    { json, set: sets },
    { stdout: Object.assign(stdout, { isTTY }), stderr, env: {}, ...(pages && { pages }) },
  ).catch((error: unknown) => error)
  stdout.end()
  return { ended, text: await text(stdout) }
}

async function shown(status: object): Promise<string> {
  const { ended, text } = await printed(status)
  expect(ended).toBe(0)
  return text
}

const GRANT = {
  id: 'g',
  client: '192.0.2.7',
  issuedAt: 0,
  expiresAt: 1_000,
  accessTokens: 1,
  refreshTokens: 1,
}
const HOUR = 3_600_000
const TOKENS = { access: 1, refresh: 1 }

it('`status` shows the grants of a sidecar that does not tell when they were last used', async () => {
  expect(await shown({ tokens: TOKENS, grants: [GRANT] })).toMatch(/192\.0\.2\.7 .* - +1\n/)
})

it.each([
  [{ wall: true }, null, 'more than 6 broke the device, and may come again after postern retry'],
  [
    { wall: true, doubted: true },
    null,
    'more than 6 broke the device, or something else did, as it was away with fewer, too, and may come again after postern retry',
  ],
  [{ wall: false }, HOUR, 'learned; no room for more than 6; one more is tried in 1h'],
  [{ ceiling: null }, null, '4 places in use, learned'],
  [{}, null, '4 places in use, learned; no room for more than 6'],
])(
  'H267 `status` tells what broke the device, and when one more is tried: %j',
  async (known, after, told) => {
    const triedAgainAt = after === null ? null : Date.now() + 1.5 * after
    const place = { route: null, used: 1, limit: 4, learned: true, triedAgainAt, ceiling: 6, ...known }
    const printed = await shown({ tokens: TOKENS, grants: [], places: [place] })
    expect(printed.replaceAll(/\s+/g, ' ')).toContain(`${told} `)
  },
)

it('H286 `status` tells how many places the sidecars of a fleet share', async () => {
  const place = {
    ...{ route: null, used: 1, limit: 2, learned: true, triedAgainAt: null },
    ...{ wall: true, fleet: 4 },
  }
  const printed = await shown({ tokens: TOKENS, grants: [], places: [place] })
  expect(printed.replaceAll(/\s+/g, ' ')).toContain(
    '2 places in use, learned; all sidecars share 4; one more broke',
  )
})

const DAY = 24 * HOUR

it.each([
  [
    {},
    DAY,
    'in the last day 3 % of the requests waited, 40 ms at p99: max_in_flight: {max: 8} would do, if the device takes as many ',
  ],
  [{}, 23.5 * HOUR, 'in the last day 3 % '],
  [{}, 3.5 * HOUR, 'in the last 3h 3 % '],
  [{ p99: 39.2 }, DAY, ' 40 ms at p99: '],
  [{ p99: 2_540 }, DAY, ' 2.5 s at p99: '],
  [{ refused: 12 }, DAY, ' 40 ms at p99, 1 % were refused: max_in_flight'],
  [{ wouldDo: null }, DAY, ' 40 ms at p99 '],
  [{ wouldDo: null, ceiling: 4 }, DAY, ' 40 ms at p99: the device has shown that it has no room for more '],
  [
    { waited: 3, p99: 0, matters: false, wouldDo: null, ceiling: 4 },
    DAY,
    'in the last day 0.3 % of the requests waited ',
  ],
  [{ waited: 0.5, p99: 0, matters: false, wouldDo: null }, DAY, 'less than 0.1 % of the requests waited '],
  [{ waited: 0, p99: 0, matters: false, wouldDo: null }, DAY, 'in the last day none of the requests waited '],
  [{ requests: 0, waited: 0, p99: 0, matters: false, wouldDo: null }, DAY, '68 of 132 at once '],
])('`status` says whether requests waited for places: %j, %d', async (figures, counts, told) => {
  const { ceiling = null, ...other } = figures as { readonly ceiling?: number }
  const waits = {
    ...{ since: Date.now() - counts, requests: 1_000, waited: 30, refused: 0, p99: 40 },
    ...{ matters: true, wouldDo: 8, ...other },
  }
  const place = {
    ...{ route: null, used: 4, limit: 4, learned: true, triedAgainAt: null, wall: null, ceiling },
    ...{ streams: { used: 64, limit: 64 }, tunnels: { used: 0, limit: 64 }, waits },
  }
  const printed = await shown({ tokens: TOKENS, grants: [], places: [place] })
  expect(printed.replaceAll(/\s+/g, ' ')).toContain(told)
  expect(printed).toContain('with 64 of 64 streams and 0 of 64 WebSockets, 68 of 132 at once')
  expect(tooWide(printed)).toEqual([])
})

/** What is wider than a terminal: nothing but a word that is so by itself. */
const tooWide = (printed: string): readonly string[] =>
  printed.split('\n').flatMap((line) => (line.length > 80 ? [line.trim()] : []))

it.each([
  ['0123456789abcdef', '192.0.2.107', 1],
  [`${'n'.repeat(32)}.0123456789abcdef`, '2001:db8:1234:5678:9abc:def0:1234:5678', 2],
])('H233 `status` fits 80 columns and never cuts the id %s', async (id, client, lines) => {
  const [issuedAt, expiresAt] = [Date.now() - 59 * 60_000, Date.now() + 3_650 * 86_400_000]
  const place = {
    ...{ route: `/${'r'.repeat(90)}`, used: 64, limit: 64, learned: true, triedAgainAt: expiresAt },
    wall: false,
  }
  const grants = [{ ...GRANT, id, client, issuedAt, expiresAt, usedAt: issuedAt }]
  const malformed = { request: `GET /${'p'.repeat(60)}`, fault: 'a folded line', bytes: 'x'.repeat(76) }
  const quirk = { route: null, kind: 'tolerant', since: issuedAt, malformed }
  const printed = await shown({ tokens: TOKENS, grants, places: [place], quirks: [quirk] })
  expect(printed).toContain('device: malformed HTTP, read by the tolerant rules, for 59m; first in the')
  expect(printed).toContain(`\n    ${malformed.bytes}\n`)
  expect(tooWide(printed)).toEqual([`${place.route}:`])
  const at = printed.split('\n').findIndex((line) => line.startsWith(id))
  expect(at).toBe(lines)
  expect(printed).toContain(` ${client} `)
})

it('H328 in a pipe each grant has one line, and a label stands last, so that its script turns no cell', async () => {
  const id = `${'n'.repeat(32)}.0123456789abcdef`
  const label = '监控'.repeat(32)
  const issued = {
    ...GRANT,
    id,
    client: 'operator',
    label,
    issuedAt: Date.now(),
    expiresAt: Date.now() + 90.5 * 24 * HOUR,
  }
  const grants = [issued, { ...GRANT, client: '2001:db8:1234:5678:9abc:def0:1234:5678' }]
  const { text: piped } = await printed({ tokens: TOKENS, grants }, false, false)
  expect(piped.split('\n')[0]).toMatch(/^GRANT +CLIENT +AGE +EXPIRES +USED +TOKENS {2}LABEL$/)
  expect(piped).toMatch(new RegExp(`^${id} {2}operator +\\d+s +90d +- +1 +${label}$`, 'm'))
  const seen = await shown({ tokens: TOKENS, grants })
  expect(seen).toContain(`\n${id}\n  operator `)
  // Without a space the terminal breaks it, at its own edge.
  expect(seen).toMatch(new RegExp(`^${label}$`, 'm'))
})

const longAddress = `http://192.0.2.7/${'p'.repeat(90)}`

const ALARM = {
  ...{ name: 'PosternDeviceDown', key: 'PosternDeviceDown', level: 'critical', since: null },
  ...{ what: 'The device is down: connection refused', meaning: 'Clients get an error.' },
  remedy: `See whether it is on, and whether ${longAddress} is its address (upstream.url).`,
}

it('H233 H291 `status` begins with the alarms, in 80 columns, and says where each is explained', async () => {
  const since = Date.now() - 5 * 60_000 - 1_000
  const alarms = [
    { ...ALARM, since },
    { ...ALARM, level: 'note' },
  ]
  const lines = (await shown({ alarms, tokens: TOKENS, grants: [GRANT] })).split('\n')
  expect(lines[0]).toBe('CRITICAL The device is down: connection refused, for 5m')
  expect(lines[1]).toMatch(/^ {9}Clients get an error\. See whether it is on, and whether$/)
  const note = lines.indexOf('note     The device is down: connection refused')
  expect(lines[note - 1]).toMatch(/ More: docs\/alerts\.md#posterndevicedown$/)
  expect(lines.slice(lines.indexOf('') + 1)[0]).toMatch(/^GRANT +CLIENT/)
  expect(tooWide(lines.join('\n'))).toEqual([longAddress, longAddress])
})

it('`status` names the page about an alarm where a package keeps it', async () => {
  const pages = temporaryDirectory()
  const status = { alarms: [ALARM], tokens: TOKENS, grants: [] }
  expect((await printed(status, false, false, pages)).text).toContain(
    ' More: docs/alerts.md#posterndevicedown\n',
  )
  writeFileSync(join(pages, 'alerts.md'), '')
  expect((await printed(status, false, false, pages)).text).toContain(
    ` More: ${join(pages, 'alerts.md')}#posterndevicedown\n`,
  )
})

it.each([false, true])(
  'H291 `status` lists the alarms also when the shared store does not say who is logged in (json: %s)',
  async (json) => {
    const status = { alarms: [{ ...ALARM, name: 'PosternSharedStoreDown' }], tokens: null, grants: null }
    const { ended, text } = await printed(status, json)
    expect(ended).toMatchObject({
      exitCode: 1,
      message:
        'who is logged in is not known: the shared store does not respond, or refuses the command; /readyz says which',
    })
    if (json) expect(JSON.parse(text)).toEqual(status)
    else expect(text).toMatch(/^CRITICAL The device is down.*#posternsharedstoredown\n\n$/s)
  },
)
