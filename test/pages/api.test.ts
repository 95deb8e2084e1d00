import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { temporaryDirectory } from '../support/certificate.ts'
import { startDevice } from '../support/device.ts'
import { blocksOf, replaceIn, shellBlock } from '../support/pages.ts'
import { PASSWORD, startSidecar, type TestSidecar } from '../support/sidecar.ts'
import { runOnTerminal } from '../support/terminal.ts'
import { needs, needsLibrary, run } from '../support/tools.ts'

const PAGE = 'docs/api.md'
const ROOT = join(import.meta.dirname, '../..')

/** The block that names the sidecar and its certificate, with those of the test. */
function names({ url, directory }: TestSidecar): string {
  const block = replaceIn(shellBlock('docs/api.md', 'POSTERN='), 'https://localhost:8443', url)
  return replaceIn(block, '/var/lib/postern', `${directory}/state`)
}

it.concurrent('the commands of docs/api.md do what the page says', async () => {
  for (const tool of ['script', 'bash', 'curl']) needs(tool)
  const sidecar = await startSidecar({
    transport: 'tls',
    config: {
      listen: { tls: 'auto' },
      oauth: { revocation_path: '/oauth/revoke' },
      limits: { api: { requests: 3, window: '5s' } },
    },
  })
  const call = shellBlock('docs/api.md', 'curl -sS -i')
  const refresh = shellBlock('docs/api.md', 'refresh() {')
  const logOut = shellBlock('docs/api.md', '/oauth/revoke')
  const script = [
    names(sidecar),
    shellBlock('docs/api.md', 'stty -echo'),
    call,
    `ACCESS=expired; ${refresh}`, // a request with the expired token, then one with the new
    refresh, // past the limit, so curl waits
    logOut,
    call,
  ].join('\necho\n')
  const { screen, code } = await runOnTerminal(['bash', '-c', script], { env: process.env }, [
    'Password: ',
    `${PASSWORD}\r`,
  ])
  expect(code, screen).toBe(0)
  expect(screen).toMatch(/"refresh_token":/)
  expect(screen.match(/HTTP\/2 \d+|^200$|^curl: .*\d{3}$|from the device/gm)).toEqual([
    ...['HTTP/2 200', 'from the device'],
    ...['curl: (22) The requested URL returned error: 401', 'from the device'],
    ...['curl: (22) The requested URL returned error: 429', 'from the device'],
    ...['200', 'HTTP/2 401'],
  ])
}, 60_000)

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

it.concurrent.each([
  { language: 'python', file: 'client.py', probe: ['/usr/bin/python3', '-c', 'import requests_oauthlib'] },
  { language: 'go', file: 'client.go', probe: ['go', 'version'] },
  { language: 'js', file: 'client.mjs', probe: ['node', '--version'] },
] as const)(
  '$file of docs/api.md calls the API, refreshes in time, and waits after a 429',
  async ({ language, file, probe }) => {
    needsLibrary(`what ${file} needs`, probe)
    if (language === 'go')
      needsLibrary('golang.org/x/oauth2', ['ls', '/usr/share/gocode/src/golang.org/x/oauth2'])
    const folder = temporaryDirectory()
    const [program = '', ...others] = blocksOf(PAGE, language)
    expect(others).toEqual([])
    writeFileSync(join(folder, file), program)
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    // The access token expires within the first request; the third is past the limit.
    const device = await startDevice(async ({ url }, response) => {
      if (url === '/slow') await setTimeout(2_100)
      response.end(`from ${url}`)
    })
    const sidecar = await startSidecar({
      transport: 'tls',
      device,
      config: {
        listen: { tls: 'auto' },
        tokens: { access_lifetime: '2s' },
        limits: { api: { requests: 2, window: '4s' } },
      },
    })
    const commands = shellBlock('docs/api.md', 'export POSTERN PASSWORD').split('\n')
    const mine = commands.filter((line) => line.startsWith('export') || line.includes(file)).join('\n')
    const script = [
      names(sidecar),
      `PASSWORD='${PASSWORD}'`,
      replaceIn(mine, '/api/whatever', '/slow /two /three'),
    ]
    const { code, stdout, stderr } = await run('sh', ['-c', script.join('\n')], { cwd: folder, env: ENV })
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toBe('from /slow\nfrom /two\nfrom /three\n')
    expect(device.requests.map(({ target }) => target)).toEqual(['/slow', '/two', '/three'])
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'password' })).toBe(1)
    expect(await sidecar.metric('postern_tokens_issued_total', { grant: 'refresh_token' })).toBeGreaterThan(0)
    expect(await sidecar.metric('postern_rate_limited_total', { endpoint: 'api' })).toBe(1)
  },
  120_000,
)
