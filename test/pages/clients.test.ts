import { mkdirSync, writeFileSync } from 'node:fs'
import { request, type ServerResponse } from 'node:http'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { type Device, readBody, startDevice } from '../support/device.ts'
import { blocksOf, replaceIn, shellBlock } from '../support/pages.ts'
import { until } from '../support/redis.ts'
import { PASSWORD, startSidecar, type YamlPart } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, needsLibrary } from '../support/tools.ts'
import { acceptWebSockets } from '../support/websocket.ts'

const PAGE = 'docs/clients.md'
const ROOT = join(import.meta.dirname, '../..')

/** The environment of a user: Debian's programs first, because a library of Python belongs to one Python; of JavaScript, the Node.js of this run. */
const environment = (language: Program['language']): NodeJS.ProcessEnv => ({
  PATH: [...(language === 'js' ? [dirname(process.execPath)] : []), '/usr/bin', process.env.PATH].join(
    delimiter,
  ),
  HOME: temporaryDirectoryOf('home'),
  GOCACHE: temporaryDirectoryOf('go'),
})

/** A folder that outlives the run, for what compilers keep. */
function temporaryDirectoryOf(name: string): string {
  const folder = join(ROOT, 'node_modules', '.cache', `postern-${name}`)
  mkdirSync(folder, { recursive: true })
  return folder
}

const PROGRAMS = [
  { language: 'python', file: 'client.py', probe: ['/usr/bin/python3', '-c', 'import requests_oauthlib'] },
  { language: 'go', file: 'client.go', probe: ['go', 'version'] },
  { language: 'js', file: 'client.mjs', probe: ['node', '--version'] },
] as const

/** The second program in JavaScript. */
const LIVE = {
  language: 'js',
  file: 'live.mjs',
  probe: ['node', '--version'],
} as const

type Program = (typeof PROGRAMS)[number] | typeof LIVE

interface Scene {
  readonly device: Device
  readonly config: YamlPart
  /** The words behind the file in a command of the page, and those in their place. */
  readonly words?: string
  readonly paths: string
  /** What happens when the program has printed a text. */
  readonly when?: readonly [shown: string, act: (revokeAll: () => Promise<void>) => unknown]
}

/**
 * Runs a program of the page as the page says, in front of a device. Skips if it lacks what it needs. The clock of the sidecar moves only when
 * the test moves it, so a program that a busy machine delays meets the same window.
 */
async function runProgram(
  { language, file, probe }: Program,
  { device, config, words = '/api/whatever', paths, when }: Scene,
) {
  for (const tool of ['script', 'bash']) needs(tool)
  needsLibrary(`what ${file} needs`, probe)
  // An empty folder outside of this checkout: the file runs as it stands on the page, with what a user has.
  const folder = temporaryDirectory()
  const [program = ''] = blocksOf(PAGE, language).slice(file === LIVE.file ? 1 : 0)
  writeFileSync(join(folder, file), program)
  const sidecar = await startSidecar({
    transport: 'tls',
    device,
    clock: stillClock(),
    config: { listen: { tls: 'auto' }, ...config },
  })
  const revokeAll = () =>
    postToSocket(join(sidecar.directory, 'state/control.sock'), '/revoke', '{"all": true}')
  const named = shellBlock('docs/clients.md', 'stty -echo')
  const blocks = [
    shellBlock('docs/clients.md', 'python3 client.py'),
    shellBlock('docs/clients.md', 'live.mjs events'),
  ]
  const lines = blocks.join('\n').split('\n')
  const command = lines.find((line) => line.includes(`${file} ${words}`)) ?? ''
  const script = [
    replaceIn(
      replaceIn(named, 'https://localhost:8443', sidecar.url),
      '/var/lib/postern',
      `${sidecar.directory}/state`,
    ),
    replaceIn(command, words, paths),
  ].join('\n')
  const acts = async (): Promise<string> => {
    await when?.[1](revokeAll)
    return ''
  }
  const session = runOnTerminal(
    ['bash', '-c', script],
    { cwd: folder, env: environment(language) },
    ['Password: ', `${PASSWORD}\r`],
    ...(when === undefined ? [] : [[when[0], acts] as const]),
  )
  return { sidecar, revokeAll, session }
}

function postToSocket(socketPath: string, path: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path, method: 'POST' }, (response) => response.resume().on('end', resolve))
      .on('error', reject)
      .end(body)
  })
}

it.concurrent.each(PROGRAMS)(
  '$file of docs/clients.md calls the API, refreshes in time, and waits after a 429',
  async (program) => {
    // The access token expires within the first request; the third is past the limit.
    const device = await startDevice(async ({ url }, response) => {
      if (url === '/slow') await setTimeout(1_100)
      response.end(`from ${url}`)
    })
    const { sidecar, session } = await runProgram(program, {
      device,
      config: { tokens: { access_lifetime: '1s' }, limits: { api: { requests: 2, window: '8s' } } },
      paths: '/slow /two /three',
    })
    const limited = () => sidecar.metric('postern_rate_limited_total', { endpoint: 'api' })
    await Promise.race([session, until(async () => (await limited()) > 0)])
    await sidecar.clock.advance(8_000)
    const { code, screen } = await session
    expect(code, screen).toBe(0)
    expect(screen).toBe('Password: \nfrom /slow\nfrom /two\nfrom /three\n')
    expect(device.requests.map(({ target }) => target)).toEqual(['/slow', '/two', '/three'])
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })).toBe(1)
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'refresh_token' })).toBeGreaterThan(0)
    expect(await limited()).toBe(1)
  },
)

it.concurrent.each(PROGRAMS)(
  '$file of docs/clients.md logs in again after its grant was revoked',
  async (program) => {
    const answered = Promise.withResolvers<void>()
    const device = await startDevice(({ url }, response) => {
      if (url === '/one') response.once('finish', answered.resolve)
      response.end(`from ${url}`)
    })
    // The second request waits for the next window, which opens after the revocation.
    const { sidecar, revokeAll, session } = await runProgram(program, {
      device,
      config: { limits: { api: { requests: 1, window: '4s' } } },
      paths: '/one /two',
    })
    await answered.promise
    await revokeAll()
    await sidecar.clock.advance(4_000)
    // The refusal of the revoked token counts, too.
    const revoked = () => sidecar.metric('postern_auth_failures_total', { reason: 'revoked' })
    await Promise.race([session, until(async () => (await revoked()) > 0)])
    await sidecar.clock.advance(4_000)
    const { code, screen } = await session
    expect(code, screen).toBe(0)
    expect(screen).toBe('Password: \nfrom /one\nfrom /two\n')
    expect(await revoked()).toBe(1)
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })).toBe(2)
  },
)

it.concurrent.each([
  ['the device', 'data: two\n\nended\n'],
  // The same for `fetch` over HTTP/2, which newer Node.js speaks.
  ['the login', expect.stringMatching(/^(?:ended|broken off)\n$/)],
])('live.mjs of docs/clients.md reads events until the end of %s', async (whose, says) => {
  const held = Promise.withResolvers<ServerResponse>()
  const device = await startDevice((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.write('data: one\n\n')
    held.resolve(response)
  })
  const words = 'events /api/events'
  const { session } = await runProgram(LIVE, {
    ...{ device, config: {}, words, paths: words },
    when: [
      'data: one',
      async (revokeAll) => (whose === 'the login' ? revokeAll() : (await held.promise).end('data: two\n\n')),
    ],
  })
  const { code, screen } = await session
  const [begin, rest] = screen.split('data: one\n\n')
  expect([code, begin, rest]).toEqual([0, 'Password: \n', says])
})

it.concurrent.each([
  ['the device', 'hello\nclosed with 4000\n'],
  ['the login', 'hello\nbroken off, or refused\n'],
])('live.mjs of docs/clients.md opens a WebSocket, and tells the end of %s', async (whose, says) => {
  const device = await startDevice()
  const { sockets } = acceptWebSockets(device, (socket) => socket.send('hello'))
  const words = 'socket /api/socket'
  const { session } = await runProgram(LIVE, {
    ...{ device, config: {}, words, paths: words },
    when: ['hello', (revokeAll) => (whose === 'the login' ? revokeAll() : sockets[0]?.close(4000))],
  })
  const { code, screen } = await session
  expect([code, screen]).toEqual([0, `Password: \n${says}`])
})

it.concurrent('live.mjs of docs/clients.md uploads a file with its length', async () => {
  const device = await startDevice(async (request, response) => {
    const { length } = await readBody(request)
    response.end(`${request.method} ${request.headers['content-length']} ${length}`)
  })
  const image = join(temporaryDirectory(), 'image.bin')
  writeFileSync(image, Buffer.alloc(300_000))
  const words = 'upload /api/firmware image.bin'
  const { session } = await runProgram(LIVE, {
    device,
    config: {},
    words,
    paths: `upload /api/firmware ${image}`,
  })
  const { code, screen } = await session
  expect([code, screen]).toEqual([0, 'Password: \n200 PUT 300000 300000\n'])
  expect(device.requests[0]?.fields.join()).not.toContain('chunked')
})
