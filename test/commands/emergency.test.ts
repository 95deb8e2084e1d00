import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { runInProcess } from '../process/in-process.ts'
import { prepareSite, replaceFile, type Serving, type Site } from '../process/serve.ts'
import { startSidecar } from '../support/sidecar.ts'

const COMMANDS = [
  ['status'],
  ['explain'],
  ['retry'],
  ['healthy'],
  ['healthy', '--ready'],
  ['revoke', '--all'],
]

describe('While the configuration file has a mistake, the commands for emergencies', () => {
  let site: Site
  let sidecar: Serving
  let good: Record<string, unknown>

  beforeAll(async () => {
    // A port that is known, because the commands ask there.
    const { adminUrl, stop } = await startSidecar()
    await stop()
    site = await prepareSite({ config: { admin: { address: new URL(adminUrl).host } } })
    sidecar = await site.serveHere()
    good = JSON.parse(readFileSync(site.configFile, 'utf8'))
  })

  const write = (text: string): void => replaceFile(site.configFile, text)
  const mistaken = (part: object): void => write(JSON.stringify({ ...good, ...part }))

  it.each([
    ['an unknown key', { limmits: {} }, 'limmits: unknown key; did you mean limits?'],
    ['a key like no other, where the location is stated', { zebra: 1 }, 'zebra: unknown key'],
    ['a misspelt section beside a default', { realm: undefined, reallm: 'x' }, 'reallm: unknown key'],
    ['a wrong value', { realm: 7 }, 'realm: must be'],
    ['a missing key', { upstream: {} }, 'upstream.url: is missing'],
    ['a conflict', { password: { file: 'a', htpasswd: { file: 'b', user: 'c' } } }, 'password'],
  ])('H121 tell it in one line and go on: %s', async (_what, part, line) => {
    mistaken(part)
    await sidecar.grant()
    for (const [command = '', ...args] of COMMANDS) {
      const run = await site.postern(command, ...args)
      expect([run.code, run.stderr.split('\n').length], run.stderr).toEqual([0, 2])
      expect(run.stderr).toContain(`postern ${command}: the configuration is not usable: ${site.configFile}`)
      expect(run.stderr).toContain(line)
    }
    expect((await sidecar.status()).grants).toEqual([])
  })

  it.each([
    ['state_dir', { state_dir: 7 }],
    ['a misspelt state_dir', { state_dir: undefined, statedir: 'x' }],
    ['state_dir in another section', { state_dir: undefined, log: { state_dir: 'x' } }],
    ['tokens', { tokens: { store: 'nowhere' } }],
    ['admin', { admin: { adress: '127.0.0.1:9464' } }],
    ['a key of admin with a dot', { admin: undefined, 'admin.address': '127.0.0.1:9464' }],
    ['a key of tokens with a dot', { 'tokens.store': 'valkeys://store' }],
    ['state_dir by a name of its own', { state_dir: undefined, data_folder: 'x' }],
    ['state_dir in a merged mapping', { state_dir: undefined, '<<': { state_dir: 'x' } }],
    ['state_dir in a section of its own', { state_dir: undefined, postern: { state_dir: 'x' } }],
    ['admin by a name of its own', { admin: undefined, management: { address: '127.0.0.1:9464' } }],
  ])(
    'H121 act on nothing where the mistake hides the sidecar, and name the flag that needs no file: %s',
    async (_what, part) => {
      mistaken(part)
      await sidecar.grant()
      await expectHidden()
    },
  )

  it('H121 act on nothing where the file cannot be parsed or read', async () => {
    await sidecar.grant()
    write('realm: [')
    await expectHidden()
    write('')
    await expectHidden()
  })

  async function expectHidden(): Promise<void> {
    for (const [command = '', ...args] of COMMANDS) {
      const run = await site.postern(command, ...args)
      expect([run.code, run.stdout], run.stderr).toEqual([2, ''])
      expect(run.stderr).toContain(command === 'healthy' ? '--admin' : '--state-dir')
      expect(run.stderr).toContain('nothing was done')
    }
    expect((await sidecar.status()).grants).not.toEqual([])
  }

  it('H121 need no file where the sidecar is named: --state-dir and --admin', async () => {
    await sidecar.grant()
    write('realm: [')
    const runs = await Promise.all(
      COMMANDS.map(([command = '', ...args]) =>
        runInProcess([
          command,
          ...args,
          ...(command === 'healthy'
            ? ['--admin', new URL(sidecar.adminUrl).host]
            : ['--state-dir', site.stateDir]),
        ]),
      ),
    )
    expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual(COMMANDS.map(() => [0, '']))
  })

  it('H121 healthy asks over TLS as the former configuration says, and at https:// without one', async () => {
    const secure = await prepareSite({
      transport: 'tls',
      config: { admin: { address: '127.0.0.1:0', tls: 'on' } },
    })
    const served = await secure.serveHere()
    const { host } = new URL(served.adminUrl)
    secure.configure({ limmits: {}, admin: { address: host } })
    expect((await secure.postern('healthy')).stdout).toBe(`ok: /healthz at ${host}\n`)
    expect((await runInProcess(['healthy', '--admin', `https://${host}`])).stdout).toBe(
      `ok: /healthz at ${host}\n`,
    )
    secure.configure({ listen: { tls: 'maybe' } })
    const { code, stderr } = await secure.postern('healthy')
    expect([code, stderr]).toEqual([2, expect.stringContaining('name it with --admin')])
  })
})
