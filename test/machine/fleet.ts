import { expect } from 'vitest'
import { shellBlock } from '../support/pages.ts'
import type { Operator } from './equipment.ts'

const STORE = shellBlock('docs/fleet.md', 'appendonly yes')
const START = shellBlock('docs/fleet.md', 'enable --now postern@1')
const LOOK = shellBlock('docs/fleet.md', 'state_dir=/var/lib/postern/1')
const RESTART = shellBlock('docs/fleet.md', 'systemctl restart postern@$i')
const MIGRATE = shellBlock('docs/fleet.md', 'tcp_migrate_req')
const STOP = shellBlock('docs/fleet.md', 'disable --now postern@1')

const SHARED = `
tokens: {store: "valkey://postern@127.0.0.1:6379"}
store: {password_file: /etc/postern/store-password}
`

/** Requests on connections of their own, one after the other, until `stop` exists; prints each failure but the first of a request. */
const LOAD = `rm -f stop
(while ! [ -e stop ]; do
  curl -ksS -o /dev/null https://localhost:8443/ 2>/dev/null || curl -ksS -o /dev/null https://localhost:8443/ 2>&1
done) > failures &
load=$!
`
const END_LOAD = 'touch stop; wait $load; cat failures\n'

const pidsOf = (type: Operator['type']): Promise<string> =>
  type('systemctl show -P MainPID postern@1 postern@2')

/** Turns the installed service into two that share an address and a store, by the commands of the page. */
export async function startFleet({ type }: Operator): Promise<void> {
  await type('cp -a /etc/postern/postern.yaml .')
  await type(STORE)
  await type(`sed -i '/^tokens:/,/^$/d' /etc/postern/postern.yaml; cat >> /etc/postern/postern.yaml`, SHARED)
  expect(await type(START)).toBe('')
  expect(await type('systemctl is-active postern@1 postern@2; systemctl is-enabled postern@1')).toBe(
    'active\nactive\nenabled\n',
  )
}

/** Looks at both sidecars, and uses a token at whichever gets the connection. */
export async function lookAtFleet({ type, ask, logIn }: Operator): Promise<void> {
  const token = await logIn()
  for (let i = 0; i < 10; i += 1) expect(await ask(token)).toBe('device\n200')
  const seen = await type(LOOK)
  expect(seen).toMatch(/"msg":"(?:request|listening)"/)
  expect(seen).toMatch(/^1 grant, /m)
  expect(seen.match(/^postern_build_info.* 1$/gm)).toHaveLength(2)
  const folders = await type('stat -c "%a %U %n" /var/lib/postern/1 /var/lib/postern/2')
  expect(folders).toBe('700 postern /var/lib/postern/1\n700 postern /var/lib/postern/2\n')
  expect(await type('systemd-analyze security --no-pager postern@1')).toMatch(/exposure level for .*: [01]\./)
}

/** Restarts both, under load and by a command that does so one after the other, without a failed request. */
export async function restartFleet({ type }: Operator, command = RESTART): Promise<void> {
  const before = await pidsOf(type)
  expect(await type(`${LOAD}${command} > output 2>&1\n${END_LOAD}`)).toBe('')
  const after = await pidsOf(type)
  const stayed = before.split('\n').filter((pid) => pid !== '' && after.includes(pid))
  expect(stayed).toEqual([])
}

export async function migrateConnections({ type }: Operator): Promise<void> {
  await type(MIGRATE)
  expect(await type('cat /proc/sys/net/ipv4/tcp_migrate_req')).toBe('1\n')
}

/** Goes back to one service with the configuration of before, and removes the store. */
export async function endFleet({ type }: Operator): Promise<void> {
  await type('cp -a postern.yaml /etc/postern/postern.yaml && rm /etc/sysctl.d/60-postern.conf')
  await type(STOP)
  await type(
    'apt-get purge -y --autoremove redis-server && rm -rf /etc/redis && (! id redis || deluser redis)',
  )
  expect(await type('systemctl is-active postern; systemctl is-active postern@1 || true')).toBe(
    'active\ninactive\n',
  )
}
