import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import type { Issued } from '../../src/admin/control-socket.ts'
import { control } from '../../src/commands/control.ts'
import { MOST_ISSUED } from '../../src/tokens/grant-rules.ts'
import { startHook } from '../password/hook.ts'
import { makeNames, OF_MONITOR } from '../support/passwords.ts'
import { startSidecar } from '../support/sidecar.ts'
import { acceptWebSockets, openWebSocket } from '../support/websocket.ts'
import { ENV, MAIN, prepareSite, type Serving, type Site } from './serve.ts'

const ISSUED = 'token issued by the operator'

/** Runs `postern issue --json` to its end; fails unless it issues. */
async function issue(
  site: Site,
  ...flags: string[]
): Promise<{ accessToken: string; grant: string; expiresAt: number }> {
  const { code, stdout, stderr } = await site.postern('issue', '--json', ...flags)
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const grantIds = async (sidecar: Serving): Promise<readonly string[]> =>
  (await sidecar.status()).grants.map(({ id }) => id)

it('H292 `postern issue` prints a token once, with the rights of its name, and everything but the token can be seen', async () => {
  const names = makeNames({ admin: undefined, monitor: OF_MONITOR })
  const site = await prepareSite({ config: names.config })
  const sidecar = await site.serveHere()
  const label = 'ticket "4711" – Prüfstand'
  const run = await site.postern('issue', '--name', 'monitor', '--for', '90d', '--label', label)
  const token = run.stdout.trimEnd()
  const [, grant = '', expires = ''] = /^grant (\S+) ends at (\S+), in 90d\n/.exec(run.stderr) ?? []
  expect([run.code, grant]).toEqual([0, expect.stringMatching(/^monitor\.[\da-f]{16}$/)])
  expect(run.stdout).toMatch(/^[\w-]{43}\n$/)
  expect(run.stderr).toMatch(/this ends it:\n {2}postern revoke --grant \S+ --config \S+\.yaml\n$/)

  const ask = (method: string, path: string, fields: readonly string[] = []) =>
    sidecar.request({ method, path, token, fields })
  expect((await ask('GET', '/status')).status).toBe(200)
  expect((await ask('GET', '/other')).json().error).toBe('insufficient_scope')
  expect((await sidecar.refresh(token)).json().error).toBe('invalid_grant')
  expect(await sidecar.metric('postern_tokens_issued_total', 'grant="issued"')).toBe(1)
  expect(await sidecar.metric('postern_issued_tokens')).toBe(1)
  const expiresAt = await sidecar.metric('postern_issued_token_expiry_timestamp_seconds')
  expect(Math.abs(expiresAt * 1000 - Date.parse(expires))).toBeLessThan(2000)

  const [table, json] = await Promise.all([site.postern('status'), site.postern('status', '--json')])
  expect(table.stdout).toMatch(new RegExp(`^${grant} +operator .* ${label}$`, 'm'))
  expect(JSON.parse(json.stdout).grants).toMatchObject([{ id: grant, label, client: 'operator' }])
  expect(await sidecar.waitForLog(ISSUED)).toMatchObject({ grant, name: 'monitor', label, level: 40 })
  const { requests } = JSON.parse((await site.postern('explain', '--json')).stdout)
  const explained = await site.postern(
    'explain',
    requests.find((each: { path: string }) => each.path === '/status').id,
  )
  expect(explained.stdout.replaceAll(/\n +/g, ' ')).toContain(
    `of grant ${grant}, of the password monitor. An operator issued it: ${label}.`,
  )
  for (const text of [sidecar.lines.join(''), table.stdout, json.stdout, explained.stdout])
    expect(text).not.toContain(token)

  const second = await issue(site, '--name', 'admin', '--for', '1m')
  expect([await sidecar.use(second.accessToken), (await ask('GET', '/status')).status]).toEqual([200, 200])
  const more = { name: 'monitor', label: 'one of many', lifetime: 60_000 }
  for (let i = 2; i < MOST_ISSUED; i += 1)
    await control(site.stateDir, { method: 'POST', path: '/issue', command: more })
  expect(await site.postern('issue', '--name', 'admin', '--for', '1h')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      / monitor\.\S+ \(one of many\) was not used .*: postern revoke --grant monitor\.\S+ makes room/,
    ),
  })
  expect(await site.postern('revoke', '--grant', grant)).toMatchObject({
    code: 0,
    stdout: '1 grant revoked\n',
  })
  expect([await sidecar.use(token), (await grantIds(sidecar)).includes(grant)]).toEqual([401, false])
})

it('H293 a flag that is wrong, or a name that there is not, ends with 2, says what is right, and issues nothing', async () => {
  const site = await prepareSite({ config: makeNames({ admin: undefined, monitor: 'read' }).config })
  const sidecar = await site.serveHere()
  const label = (text: string) => ['--name', 'admin', '--for', '1h', '--label', text]
  const wrong: readonly (readonly [flags: readonly string[], says: RegExp])[] = [
    [['--name', 'admin'], /--for: say for how long/],
    ...[
      '',
      '0s',
      '59s',
      '59999ms',
      '367d',
      '366.5d',
      '90',
      '-1d',
      '1e9d',
      `${'9'.repeat(400)}d`,
      'NaN',
      '1y',
    ].map((time) => [['--name', 'admin', `--for=${time}`], /--for: say for how long/] as const),
    [['--name', 'nobody', '--for', '1h'], /no entry of passwords has this name/],
    [['--name', '__proto__', '--for', '1h'], /no entry of passwords has this name/],
    [['--for', '1h'], /--name: say whose token/],
    [['--for', '1h', '--for', '2h'], /must not be given twice/],
    // Control bytes, line breaks, an order that turns, nothing to see, spaces at the end, too long.
    ...[
      'a\u001b[2J',
      'a\nb',
      'a\u2028b',
      '\u202egnorw',
      'a\u200bb',
      '\u0000',
      ' a',
      'a ',
      ' ',
      '\u00a0',
      'x'.repeat(65),
    ].map((text) => [label(text), /--label: must have 1 to 64 printable/] as const),
  ]
  for (const [flags, says] of wrong) {
    const run = await site.postern('issue', ...flags)
    expect([flags, run]).toMatchObject([flags, { code: 2, stdout: '', stderr: expect.stringMatching(says) }])
    // What a terminal would act on does not come back.
    expect(run.stderr).not.toMatch(/[^\n -~]/)
  }
  expect(await grantIds(sidecar)).toEqual([])
  for (const text of ['𝄞'.repeat(64), 'שלום', '{"a": 1}', "' OR 1=1 --", '<b>', '%s issued 5 x'])
    await issue(site, ...label(text))
  expect((await sidecar.status()).grants).toHaveLength(6)
})

it('H292 a token whose output is lost is revoked, because nobody has it, and the exit code says so', async () => {
  const site = await prepareSite()
  const sidecar = await site.serveHere()
  const command = [process.execPath, MAIN, 'issue', '--config', site.configFile, '--for', '1h']
  const toFullDisk = ['sh', '-c', 'exec "$@" > /dev/full', 'sh', ...command]
  for (const [[program = '', ...args], code] of [
    [toFullDisk, 1],
    [[...toFullDisk, '--json'], 1],
    [command, 141],
  ] as const) {
    const child = spawn(program, args, { env: ENV, stdio: ['ignore', 'pipe', 'pipe'] })
    // The reader of a pipe leaves.
    child.stdout.destroy()
    const [said, exit] = await Promise.all([text(child.stderr), once(child, 'exit')])
    expect([exit[0], said]).toEqual([
      code,
      expect.stringMatching(/^the token could not be printed, so .* is revoked\n/),
    ])
    expect(await grantIds(sidecar)).toEqual([])
  }
  expect(await sidecar.metric('postern_tokens_issued_total', 'grant="issued"')).toBe(3)
})

it('H293 where nothing could end a token, or where no sidecar runs, none is issued, and the exit code is 1', async () => {
  const site = await prepareSite({
    config: {
      upstream: { auth: { kind: 'basic', user: 'admin' } },
      password: { device: true, file: undefined },
    },
  })
  const idle = await site.postern('issue', '--for', '1h')
  expect(idle).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('no sidecar is running'),
  })
  const sidecar = await site.serveHere()
  const run = await site.postern('issue', '--for', '1h')
  expect(run).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('with password.device') })
  expect(await grantIds(sidecar)).toEqual([])
})

it('H293 with a hook a token is issued only if its fingerprint can end it', async () => {
  const hook = await startHook()
  const site = await prepareSite({ config: { password: { socket: hook.socket, file: undefined } } })
  const sidecar = await site.serveHere()
  expect(await site.postern('issue', '--for', '1h')).toMatchObject({ code: 0 })
  await sidecar.stop()
  hook.fingerprint = undefined
  await site.serveHere()
  const run = await site.postern('issue', '--for', '1h')
  expect(run).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('gives no fingerprint') })
})

it('H294 C8 an issued token survives a restart, and none a new password of its name: running, at the reload, or while it was stopped', async () => {
  const names = makeNames({ admin: undefined, monitor: 'read' })
  const site = await prepareSite({ config: names.config })
  acceptWebSockets(site.device)
  const first = await site.serve()
  const [admin, monitor] = [
    await issue(site, '--name', 'admin', '--for', '366d'),
    await issue(site, '--name', 'monitor', '--for', '90d'),
  ]
  await first.kill()
  const second = await site.serveHere()
  expect(await Promise.all([admin, monitor].map(({ accessToken }) => second.use(accessToken)))).toEqual([
    200, 200,
  ])
  const { socket } = await openWebSocket(second.url, { token: admin.accessToken })
  const closed = once(socket, 'close')
  names.set('admin', 'another password')
  await closed
  expect(await Promise.all([admin, monitor].map(({ accessToken }) => second.use(accessToken)))).toEqual([
    401, 200,
  ])
  await second.stop()
  names.set('monitor', 'another password of it')
  const third = await site.serveHere()
  expect(await third.use(monitor.accessToken)).toBe(401)
  const last = await issue(site, '--name', 'monitor', '--for', '1h')
  site.configure({ passwords: names.config.passwords.slice(0, 1) })
  third.signal('SIGHUP')
  await expect.poll(() => third.use(last.accessToken)).toBe(401)
  expect(await site.postern('issue', '--name', 'monitor', '--for', '1h')).toMatchObject({ code: 2 })
})

it('H295 a token in its last week is an alarm until one with its label is issued, and works over HTTP/2 meanwhile', async () => {
  const DAY = 86_400_000
  const sidecar = await startSidecar({ transport: 'h2' })
  const issueFor = (days: number) =>
    control<Issued>(join(sidecar.directory, 'state'), {
      method: 'POST',
      path: '/issue',
      command: { label: 'probe', lifetime: days * DAY },
    })
  const alarms = () => sidecar.overview.condition().alarms.map(({ name }) => name)
  const { accessToken, grant, expiresAt } = await issueFor(15)
  await sidecar.clock.leap(8 * DAY - 60_000)
  expect(alarms()).not.toContain('PosternIssuedTokenEnds')
  await sidecar.clock.leap(120_000)
  expect(alarms()).toContain('PosternIssuedTokenEnds')
  const ends = await sidecar.metric('postern_issued_token_expiry_timestamp_seconds')
  expect(Math.abs(ends * 1000 - expiresAt)).toBeLessThan(2000)
  expect((await sidecar.request({ token: accessToken })).status).toBe(200)
  expect((await sidecar.overview.findGrants('PROBE')) as object).toMatchObject({
    rows: [{ id: grant, label: 'probe' }],
  })
  await issueFor(1)
  expect(alarms()).toContain('PosternIssuedTokenEnds')
  await issueFor(90)
  expect(alarms()).not.toContain('PosternIssuedTokenEnds')
})
