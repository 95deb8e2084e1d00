import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { stillClock } from '../support/clock.ts'
import { type Device, startDevice } from '../support/device.ts'
import { blocksOf, replaceIn, shellBlock } from '../support/pages.ts'
import { until } from '../support/redis.ts'
import { PASSWORD, startSidecar, type YamlPart } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, needsLibrary } from '../support/tools.ts'

const PAGE = 'docs/clients.md'
const ROOT = join(import.meta.dirname, '../..')

/** The environment of a user: Debian's programs first, because a library of Python belongs to one Python. */
const ENV: NodeJS.ProcessEnv = {
  PATH: ['/usr/bin', process.env.PATH].join(delimiter),
  HOME: temporaryDirectoryOf('home'),
  // Go finds Debian's packages so. A module of your own names them in its go.mod.
  GO111MODULE: 'off',
  GOPATH: '/usr/share/gocode',
  GOCACHE: temporaryDirectoryOf('go'),
}

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

type Program = (typeof PROGRAMS)[number]

interface Scene {
  readonly device: Device
  readonly config: YamlPart
  /** What the program asks for. */
  readonly paths: string
}

/**
 * Runs a program of the page as the page says, in front of a device. Skips if it lacks what it needs. The clock of the sidecar moves only when
 * the test moves it, so a program that a busy machine delays meets the same window.
 */
async function runProgram({ language, file, probe }: Program, { device, config, paths }: Scene) {
  for (const tool of ['script', 'bash']) needs(tool)
  needsLibrary(`what ${file} needs`, probe)
  if (language === 'go')
    needsLibrary('golang.org/x/oauth2', ['ls', '/usr/share/gocode/src/golang.org/x/oauth2'])
  const folder = temporaryDirectory()
  const [program = '', ...others] = blocksOf(PAGE, language)
  expect(others).toEqual([])
  writeFileSync(join(folder, file), program)
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const sidecar = await startSidecar({
    transport: 'tls',
    device,
    clock: stillClock(),
    config: { listen: { tls: 'auto' }, ...config },
  })
  const revokeAll = () =>
    postToSocket(join(sidecar.directory, 'state/control.sock'), '/revoke', '{"all": true}')
  const named = shellBlock('docs/clients.md', 'stty -echo')
  const lines = shellBlock('docs/clients.md', 'python3 client.py').split('\n')
  const command = lines.find((line) => line.includes(file)) ?? ''
  const script = [
    replaceIn(
      replaceIn(named, 'https://localhost:8443', sidecar.url),
      '/var/lib/postern',
      `${sidecar.directory}/state`,
    ),
    replaceIn(command, '/api/whatever', paths),
  ].join('\n')
  const session = runOnTerminal(['bash', '-c', script], { cwd: folder, env: ENV }, [
    'Password: ',
    `${PASSWORD}\r`,
  ])
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
    sidecar.clock.advance(8_000)
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
    sidecar.clock.advance(4_000)
    // The refusal of the revoked token counts, too.
    const revoked = () => sidecar.metric('postern_auth_failures_total', { reason: 'revoked' })
    await Promise.race([session, until(async () => (await revoked()) > 0)])
    sidecar.clock.advance(4_000)
    const { code, screen } = await session
    expect(code, screen).toBe(0)
    expect(screen).toBe('Password: \nfrom /one\nfrom /two\n')
    expect(await revoked()).toBe(1)
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })).toBe(2)
  },
)
