import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { begin, runAtKeyboard, runInProcess } from '../process/in-process.ts'
import { ENV, MAIN, prepareSite, type Run, type Site } from '../process/serve.ts'
import { makeCertificate, temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { passUntil, stillClock } from '../support/clock.ts'
import { startDevice } from '../support/device.ts'
import { makeNames, passwordOf } from '../support/passwords.ts'
import { unusedPort } from '../support/raw.ts'
import { PASSWORD, type YamlPart } from '../support/sidecar.ts'
import { needs, run } from '../support/tools.ts'
import { drip } from './drip.ts'

/** A sidecar with a self-signed certificate, where clients can end their logins. */
async function servedSite(config: YamlPart = {}, listen: YamlPart = {}): Promise<Site> {
  const oauth = { revocation_path: '/oauth/revoke' }
  const site = await prepareSite({ transport: 'tls', config: { oauth, ...config } })
  // `configure` merges mappings, and the site has a pair.
  site.configure({ listen: { tls: 'auto' } })
  site.configure({ listen })
  await site.serveHere()
  return site
}

const tryIt = (
  site: Site,
  path: string,
  stdin = `${PASSWORD}\n`,
  ...flags: readonly string[]
): Promise<Run> => runInProcess(['try', path, '--config', site.configFile, ...flags], { stdin })

/** A folder with `postern` for the commands that are printed. */
function programFolder(): string {
  const folder = temporaryDirectory()
  writeFileSync(join(folder, 'postern'), `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`, {
    mode: 0o755,
  })
  return folder
}

/** Runs the command for curl that `try` has printed. */
async function pasteCurl({ stderr }: Pick<Run, 'stderr'>): ReturnType<typeof run> {
  needs('curl')
  const [, command = ''] = /^The same with curl:\n {2}((?:.*\n)+)$/m.exec(stderr) ?? []
  const env = { ...ENV, PATH: `${programFolder()}${delimiter}${process.env.PATH}` }
  return run('sh', ['-c', command.replace(/\bcurl /, 'curl -sS ')], { env })
}

const grants = async (site: Site): Promise<readonly unknown[]> =>
  JSON.parse((await site.postern('status', '--json')).stdout).grants

it('H358 asks for the password, shows status, limits, body and the command for curl, and ends its login', async () => {
  const site = await servedSite({ limits: { api: { requests: 60 } } })
  const { screen, code } = await runAtKeyboard(
    ['try', '/api/status?x=1', '--config', site.configFile],
    ['Password: ', `${PASSWORD}\r`],
  )
  expect(code).toBe(0)
  const certificate = join(site.stateDir, 'tls/cert.pem')
  expect(
    screen.replaceAll(/\d{10} \(in \d+ s\)/g, 'TIME (in N s)').replaceAll(/localhost:\d+/g, 'HOST'),
  ).toBe(
    `Password: 
200 OK
Content-Type: text/plain
X-RateLimit-Limit: 60
X-RateLimit-Remaining: 59
X-RateLimit-Reset: TIME (in N s)

from the device

The same with curl:
  { printf 'Authorization: Bearer '; postern issue --for 1h --config ${site.configFile}; } |
  curl --cacert ${certificate} -H @- 'https://HOST/api/status?x=1'
`,
  )
  expect(site.device.requests.map(({ method, target }) => [method, target])).toEqual([
    ['GET', '/api/status?x=1'],
  ])
  expect(await grants(site)).toEqual([])

  const pasted = await pasteCurl({ stderr: screen })
  expect([pasted.code, pasted.stdout]).toEqual([0, 'from the device'])
  expect(site.device.requests[1]?.header('host')).toBe(site.device.requests[0]?.header('host'))
})

it('H358 writes a body that is no text byte for byte to a pipe, and not to a terminal', async () => {
  const site = await servedSite()
  const bytes = Buffer.from(Uint8Array.from({ length: 70_000 }, (_, i) => (i * 7) % 256))
  site.device.handle((_request, response) => response.end(bytes))
  const child = spawn(process.execPath, [MAIN, 'try', '/image', '--config', site.configFile], {
    env: ENV,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  closeLater(() => void child.kill())
  child.stdin.end(PASSWORD)
  const [piped] = await Promise.all([buffer(child.stdout), once(child, 'close')])
  expect(createHash('sha256').update(piped).digest('hex')).toBe(
    createHash('sha256').update(bytes).digest('hex'),
  )

  const { screen } = await runAtKeyboard(
    ['try', '/image', '--config', site.configFile],
    ['Password: ', `${PASSWORD}\r`],
  )
  expect(screen).toContain('\n\n(70000 bytes, no text: send standard output to a file)\n')
  expect(screen).not.toContain('\0')
})

it('H358 no text of a device controls the terminal', async () => {
  const site = await servedSite()
  site.device.handle((_request, response) =>
    response.writeHead(200, { 'Content-Type': 'text/plain' }).end('\x1b[2Jone\r\ntwo\x9b\u202e\n'),
  )
  const { screen } = await runAtKeyboard(
    ['try', '/', '--config', site.configFile],
    ['Password: ', `${PASSWORD}\r`],
  )
  expect(screen).toContain('\n\\u001b[2Jone\ntwo\\u009b\\u202e\n')
})

it('H358 takes a token of a file or of standard input, and keeps it', async () => {
  const site = await servedSite()
  const { stdout: token } = await site.postern('issue', '--for', '1h')
  const file = join(site.directory, "the monitor's token")
  writeFileSync(file, token, { mode: 0o600 })
  const ofFile = await tryIt(site, '/a', '', '--token-file', file)
  expect([ofFile.code, ofFile.stdout]).toEqual([0, 'from the device'])
  expect((await pasteCurl(ofFile)).stdout).toBe('from the device')
  const ofInput = await tryIt(site, '/a', token, '--token-file', '-')
  expect(ofInput.stdout).toBe('from the device')
  expect(ofInput.stderr).toContain(`\n  printf 'Authorization: Bearer %s' "$ACCESS_TOKEN" |\n  curl `)
  for (const { stderr } of [ofFile, ofInput]) {
    expect(stderr).not.toContain(token.trim())
    expect(stderr).not.toContain('WARNING')
  }
  expect(await grants(site)).toHaveLength(1)

  await site.postern('revoke', '--all')
  const ended = await tryIt(site, '/a', '', '--token-file', file)
  expect([ended.code, ended.stderr]).toEqual([
    1,
    expect.stringMatching(
      /\npostern try: the token is unknown, has expired or is revoked; postern issue makes another one\n$/,
    ),
  ])
})

it('H358 warns of a token file that other users can read or write', async () => {
  const site = await servedSite()
  const { stdout: token } = await site.postern('issue', '--for', '1h')
  const file = join(site.directory, 'a token')
  writeFileSync(file, token)
  for (const [mode, reason] of [
    [0o644, 'others can read it'],
    [0o666, 'others can read it, others can write it, its group can write it'],
  ] as const) {
    chmodSync(file, mode)
    const { code, stdout, stderr } = await tryIt(site, '/a', '', '--token-file', file)
    expect([code, stdout]).toEqual([0, 'from the device'])
    expect(stderr.split('\n')[0]).toBe(`WARNING --token-file: ${file}: ${reason}; chmod 0600 '${file}'`)
  }
})

it('H358 the command for curl works with a certificate for other names, any target and one of several passwords', async () => {
  needs('openssl')
  const folder = temporaryDirectory()
  const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
  await run('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', '/CN=a'],
    ...['-addext', 'subjectAltName=DNS:*.example.com', '-keyout', tls.key, '-out', tls.cert],
  ])
  const names = makeNames({ monitor: undefined })
  const site = await servedSite(names.config, { tls })
  for (const target of ["/a'b/[1-3]{x}?q=$HOME", '/plain']) {
    const tried = await tryIt(site, target, passwordOf('monitor'))
    expect(tried.stderr).toMatch(
      / issue --for 1h --name monitor .* --connect-to ::localhost:\d+ .*https:\/\/device\.example\.com:/s,
    )
    expect((await pasteCurl(tried)).stdout).toBe('from the device')
    expect(site.device.requests.slice(-2).map((request) => request.target)).toEqual([target, target])
  }
})

it.each([
  ['without TLS', async () => ({ tls: 'off' })],
  ['on a Unix socket', async () => ({ address: `unix:${join(temporaryDirectory(), 'public.sock')}` })],
  ['on all addresses of IPv6', async () => ({ address: `[::]:${await unusedPort()}` })],
])('H358 reaches a listener %s, as curl does', async (_where, listen) => {
  const site = await servedSite({}, await listen())
  const tried = await tryIt(site, '/a')
  expect([tried.code, tried.stdout]).toEqual([0, 'from the device'])
  expect((await pasteCurl(tried)).stdout).toBe('from the device')
})

it('H358 a signal ends a stream, and then the login', async () => {
  const site = await servedSite()
  site.device.handle((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write('data: 1\n\n')
  })
  const trying = begin(['try', '/events', '--config', site.configFile], { stdin: PASSWORD })
  await once(trying.news, 'stdout')
  expect(await grants(site)).toHaveLength(1)
  trying.signal('SIGINT')
  const { code, stdout, stderr } = await trying.ended
  expect([code, stdout, stderr]).toEqual([
    1,
    'data: 1\n\n',
    expect.stringMatching(/\npostern try: stopped\n$/),
  ])
  expect(await grants(site)).toEqual([])
})

it('H358 without oauth.revocation_path the login ends by itself', async () => {
  const site = await servedSite({ oauth: {} })
  expect((await tryIt(site, '/a')).code).toBe(0)
  expect(await grants(site)).toHaveLength(1)
})

it('H359 says that nothing listens, before it asks for the password, and which command starts it', async () => {
  const address = `127.0.0.1:${await unusedPort()}`
  const site = await prepareSite({ config: { listen: { address, tls: 'off' } } })
  const serve = `postern serve --config ${site.configFile}`
  const asking = ['try', '/a', '--config', site.configFile]
  expect((await runAtKeyboard(asking)).screen.replaceAll(/\s+/g, ' ').trim()).toBe(
    `postern try: ${address}: nothing listens there; start the sidecar with ${serve}`,
  )
  site.configure({ listen: { tls: 'auto' } })
  const { code, stderr } = await runInProcess(asking)
  expect([code, stderr]).toEqual([
    1,
    `postern try: no certificate is in ${site.stateDir}, so no sidecar has started there; start it with ${serve}\n`,
  ])
})

it('H359 sends no password to a server with another certificate', async () => {
  const site = await servedSite()
  const other = await makeCertificate()
  site.configure({ listen: { tls: { cert: other.certFile } } })
  const port = await unusedPort()
  const impostor = await prepareSite({
    transport: 'tls',
    config: { listen: { address: `127.0.0.1:${port}` } },
  })
  const { metric } = await impostor.serveHere()
  const { code, stderr } = await tryIt(
    site,
    '/a',
    PASSWORD,
    '--set',
    `listen.address=127.0.0.1:${port}`,
    '--set',
    'listen.tls=auto',
  )
  expect([code, stderr]).toEqual([
    1,
    `postern try: 127.0.0.1:${port}: another certificate than that in ${join(site.stateDir, 'tls/cert.pem')} is served there; another program or sidecar listens there, or the file is not that of this sidecar\n`,
  ])
  expect(await metric('postern_requests_total')).toBe(0)
})

it('H359 says that what listens there is no sidecar', async () => {
  const site = await servedSite()
  const server = createServer((socket) => void socket.on('error', () => {}).end('220 ready\r\n'))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  closeLater(() => void server.close())
  const bound = server.address()
  const address = `127.0.0.1:${typeof bound === 'object' && bound ? bound.port : 0}`
  const overTls = await tryIt(site, '/a', PASSWORD, '--set', `listen.address=${address}`)
  expect(overTls.stderr).toMatch(
    /^postern try: \S+: what answers there does not speak TLS \(\w+\); if listen\.tls has just changed, restart the sidecar\n$/,
  )
  const plain = await tryIt(
    site,
    '/a',
    PASSWORD,
    '--set',
    `listen.address=${address}`,
    '--set',
    'listen.tls=off',
  )
  expect(plain.stderr).toMatch(/^postern try: \S+: what answers there does not speak HTTP \(\w+\); /)
})

it('H374 ends if the response for a token does not end, and says meanwhile what it waits for', async () => {
  const site = await servedSite()
  const clock = stillClock()
  const posing = await startDevice((_request, response) => drip(response, clock))
  const sets = [`listen.address=${new URL(posing.url).host}`, 'listen.tls=off'].flatMap((each) => [
    '--set',
    each,
  ])
  const args = ['try', '/a', '--config', site.configFile, ...sets]
  const begin = clock.monotonic()
  const { code, stderr } = await runInProcess(args, { stdin: PASSWORD, clock, terminal: true })
  expect(clock.monotonic() - begin).toBeLessThan(65_000)
  expect(code).toBe(1)
  expect(stderr).toMatch(/^Still waiting: a token \.\.\.\npostern try: \S+: no response within 60 s\n$/)
  posing.handle((_request, response) => void response.write('['.repeat(1_000_000)))
  expect((await runInProcess(args, { stdin: PASSWORD, clock })).stderr).toContain('is not Postern')
})

const tokens = (more: object): string => {
  const body = JSON.stringify({ access_token: 'a', refresh_token: 'b', ...more })
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}
const SWITCHED = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n'

/** A site at whose address another server gives these answers, one on each connection. */
async function answeredSite(...answers: readonly string[]): Promise<Site> {
  let connections = 0
  const server = createServer((socket) => {
    // The first connection is only tried.
    const answer = answers[connections - 1]
    connections += 1
    socket.on('error', () => {}).once('data', () => socket.write(answer ?? ''))
  })
  closeLater(() => void server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const bound = server.address()
  const address = `127.0.0.1:${typeof bound === 'object' && bound ? bound.port : 0}`
  return prepareSite({ config: { listen: { address, tls: 'off' } } })
}

it.each([
  ['a longer answer', [tokens({ padding: 'x'.repeat(16_384) })], 'what answers there is not Postern'],
  ['a token that is none', [tokens({ access_token: 'a\r\nb' })], 'what answers there is not Postern'],
  ['another protocol', [SWITCHED], 'the answer switches to another protocol'],
  ['another protocol behind a token', [tokens({}), SWITCHED], 'the answer switches to another protocol'],
])('H359 a server that is no sidecar may answer with %s', async (_what, answers, problem) => {
  const { code, stdout, stderr } = await tryIt(await answeredSite(...answers), '/a')
  expect([code, stdout, stderr]).toEqual([1, '', expect.stringContaining(problem)])
})

it('H359 a server that is no sidecar has a minute for its answer to the password', async () => {
  const { configFile } = await answeredSite('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{')
  const clock = stillClock()
  const trying = runInProcess(['try', '/a', '--config', configFile], { stdin: PASSWORD, clock })
  const { code, stderr } = await passUntil(clock, trying)
  expect([code, stderr]).toEqual([1, expect.stringMatching(/: no response within 60 s\n$/)])
})

it('H359 says that listen.allow shuts out this machine', async () => {
  const site = await servedSite({}, { allow: ['192.0.2.1'] })
  const { code, stderr } = await tryIt(site, '/a')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(
      /: the connection was closed without an answer; listen\.allow must admit the address of this machine\n$/,
    ),
  ])
})

it('H359 says that the response broke off', async () => {
  const site = await servedSite()
  site.device.handle((_request, response) => {
    response.writeHead(200, { 'Content-Length': 10 }).write('half', () => response.destroy())
  })
  const { code, stdout, stderr } = await tryIt(site, '/a')
  expect([code, stdout]).toEqual([1, 'half'])
  expect(stderr).toMatch(/\npostern try: the response broke off after 4 bytes\n$/)
})

it('H359 names a wrong password, a limit, and a failure of the device, and exits with 1', async () => {
  const site = await servedSite({ limits: { api: { requests: 1 }, oauth: { requests: 4 } } })
  const wrong = await tryIt(site, '/a', 'hunter2')
  expect([wrong.code, wrong.stdout, wrong.stderr]).toEqual([
    1,
    '',
    'postern try: the password is wrong; postern check names the file or the account that has the right one\n',
  ])
  site.device.handle((_request, response) => response.writeHead(404).end('none'))
  const absent = await tryIt(site, '/a')
  expect([absent.code, absent.stdout]).toEqual([1, 'none'])
  const limited = await tryIt(site, '/a')
  expect([limited.code, limited.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^429 Too Many Requests\n(?:.*\n)*Retry-After: \d+\n(?:.*\n)*Why:\n {2}postern explain [\da-f]+ --config \S+\n(?:.*\n)*postern try: limits\.api: too many requests came from this address; try again in \d+ s\n$/,
    ),
  ])
  const refused = await tryIt(site, '/a')
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^postern try: limits\.oauth: too many requests came from this address; try again in \d+ s\n$/,
    ),
  ])
})

it.each([
  [
    'a path without a slash',
    ['api'],
    PASSWORD,
    'PATH: must be a path that begins with / and contains no spaces',
  ],
  ['an empty password', ['/a'], '\n', 'the password is empty'],
  [
    'no token',
    ['/a', '--token-file', '-'],
    'no token\n',
    '--token-file: what it holds is no token; postern issue prints one',
  ],
])('H359 refuses %s with exit code 2', async (_what, args, stdin, problem) => {
  const site = await servedSite()
  const { code, stderr } = await runInProcess(['try', ...args, '--config', site.configFile], { stdin })
  expect([code, stderr]).toEqual([2, `postern try: ${problem}\n`])
})
