import { chmodSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { closeLater } from '../support/cleanup.ts'
import { needs } from '../support/tools.ts'
import { prepareSite } from './serve.ts'

it('H108 EACCES on a port below 1024: the error names the ways to allow it', async ({ skip }) => {
  needs('setpriv')
  const first = Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'))
  skip(
    process.getuid?.() !== 0 || first <= 444,
    'every user may open the port, or none may give up the right',
  )
  const site = await prepareSite({ config: { listen: { address: '127.0.0.1:444' } } })
  const launched = site.launch({ under: ['setpriv', '--bounding-set=-net_bind_service'] })
  expect([await launched.exit, await launched.stderr]).toEqual([
    { code: 1, signal: null },
    expect.stringMatching(
      /^postern serve: \S+postern\.yaml:1: listen\.address: cannot listen on 127\.0\.0\.1:444: the system lets no ordinary user open port 444 \(EACCES\); use a port from 1024 on, let systemd open it .*\n$/,
    ),
  ])
})

it.each([
  ['that is read-only', ''],
  ['in a folder that is read-only', 'state'],
])(
  'H108 a state folder %s: each line says what is wrong and what to do, and none has a stack',
  async (_where, name) => {
    const site = await prepareSite()
    const folder = join(site.directory, 'folder')
    mkdirSync(folder)
    site.configure({ state_dir: join(folder, name) })
    chmodSync(folder, 0o500)
    closeLater(() => chmodSync(folder, 0o700))
    if (process.getuid?.() === 0) needs('setpriv')
    // Without this capability root is refused like every user.
    const under = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-dac_override'] : []
    const launched = site.launch({ under })
    await launched.waitForLog('listening')
    const said = launched.log.filter(({ level }) => level >= 50)
    expect(said.map(({ msg }) => msg)).toEqual([
      'token file: serving from memory',
      'control socket: postern status, explain, issue, revoke and retry will not work',
    ])
    expect(said[1]).toMatchObject({
      reason: expect.stringContaining(`${folder} is not writable (EACCES)`),
      remedy: expect.stringContaining('writable for the user that runs Postern'),
    })
    expect(launched.log.filter((line) => 'err' in line)).toEqual([])
    await launched.stop()
  },
)
