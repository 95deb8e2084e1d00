import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
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
