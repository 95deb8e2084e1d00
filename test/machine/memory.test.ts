import { once } from 'node:events'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { budgetOf } from '../../src/memory/budget.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { isInstalled } from '../support/tools.ts'
import { addCheckout, addDevice, LIBRARIES, type Operator, operatorOf, PASSWORD } from './equipment.ts'
import { bootMachine, type Machine, minimalDebian, needsMachine } from './machine.ts'
import { PROCESSOR } from './made-once.ts'
import { FLOODS } from './memory-floods.ts'

const REPOSITORY = join(import.meta.dirname, '..', '..')
const TOOLS = ['systemd-nspawn', 'nsenter']
const PROGRAM = join(REPOSITORY, 'test', 'machine', 'memory-floods.ts')

/** The whole matrix takes three quarters of an hour, so it runs on demand. */
const BULK = process.env.POSTERN_TEST_BULK === '1'
/** How long a flood lasts (s). */
const SECONDS = BULK ? 30 : 2
const ALL = Object.keys(FLOODS)
/** The sizes of `MemoryMax` (MiB), and the floods for each, one after the other in one process, which keeps what each has taken. */
const SIZES = [
  [128, ALL],
  ...(BULK ? [[256, ALL] as const] : []),
  [512, BULK ? ALL : ['heads of 12 KB']],
] as const

/** V8's heap under the unit (MiB): 40 %, and the semi-spaces. */
const heapOf = (mib: number): number => Math.round(0.4 * mib) + 24

/** What `listen.memory: auto` comes to under so much memory (MiB). */
function accountOf(mib: number): number {
  const { limit } = budgetOf('auto', [
    { bytes: mib * 1024 ** 2, by: 'the machine' },
    { bytes: heapOf(mib) * 1024 ** 2, by: "V8's heap" },
  ])
  return Math.round(limit / 1024 ** 2)
}

let machine: Machine | undefined
let type: Operator['type']
let token: string

async function prepare(): Promise<void> {
  const root = await minimalDebian()
  await addCheckout(root)
  addDevice(root)
  machine = await bootMachine(root)
  const operator = operatorOf(machine)
  type = operator.type
  await type(LIBRARIES)
  const block = shellBlock('docs/installing.md', 'useradd')
  await type(replaceIn(block, 'postern-linux-x64', `postern-linux-${PROCESSOR}`))
  await type(shellBlock('docs/installing.md', 'asks twice'), `${PASSWORD}\n`)
  // One process for each connection, as systemd starts them, does not stand the floods that reach the device.
  await type('systemctl disable --now device.socket')
  const device = machine.spawnBeside([process.execPath, PROGRAM, 'device', '--port', '8080'])
  await once(device.stdout ?? expect.fail('it has no output'), 'data')
  token = await operator.logIn()
}

const resident = async (): Promise<number> =>
  Number(
    await type(
      "sed -n 's/^RssAnon:[^0-9]*\\([0-9]*\\) kB$/\\1/p' /proc/$(systemctl show -P MainPID postern)/status",
    ),
  )

/** The good client. It repeats nothing. */
const get = (): Promise<string> =>
  type(
    "curl -sS -m 30 --cacert /var/lib/postern/tls/cert.pem -w '%{http_code}' https://localhost:8443/ -H @-",
    `Authorization: Bearer ${token}\n`,
  )

/**
 * The unit with so much memory (MiB), without limits for the good client. A machine on a host with cgroups of version 1 has no controller
 * for memory: there the account and the heap get the sizes that follow from `MemoryMax`, and the resident memory is judged.
 */
async function restart(mib: number): Promise<void> {
  const override = '/run/systemd/system/postern.service.d'
  const bounded = (await type('systemctl show -P MemoryCurrent postern')).trim() !== '[not set]'
  const own = [
    `POSTERN_LISTEN_MEMORY=${accountOf(mib)}MiB`,
    `NODE_OPTIONS=--max-semi-space-size=8 --max-old-space-size=${Math.round(0.4 * mib)}`,
  ]
  const environment = [
    'POSTERN_LIMITS_API_REQUESTS=1000000',
    'POSTERN_LIMITS_OAUTH_REQUESTS=1000000',
    ...(bounded ? [] : own),
  ]
  const lines = ['[Service]', `MemoryMax=${mib}M`, ...environment.map((each) => `Environment="${each}"`)]
  await type(`mkdir -p ${override} && cat > ${override}/memory.conf`, lines.join('\n'))
  await type('systemctl daemon-reload && systemctl restart postern')
}

describe.each(SIZES)('The unit with MemoryMax=%iM', (mib, floods) => {
  let main: string

  beforeAll(async () => {
    if (process.getuid?.() !== 0 || !['mmdebstrap', ...TOOLS].every(isInstalled)) return
    if (machine === undefined) await prepare()
    await restart(mib)
    expect(await get()).toBe('device\n200')
    main = await type('systemctl show -P MainPID postern')
  }, 900_000)

  it.each(floods)(
    'H250 survives a flood (%s), and a client at another address loses nothing',
    async (flood) => {
      needsMachine(...TOOLS)
      const args = [PROGRAM, flood, `--token=${token}`, '--seconds', String(SECONDS)]
      const flooding = (machine ?? expect.fail('no machine')).spawnBeside([process.execPath, ...args])
      const ended = once(flooding, 'exit')
      while (flooding.exitCode === null && flooding.signalCode === null) {
        expect(await get()).toBe('device\n200')
        await type('curl -fsS -m 10 http://127.0.0.1:9464/healthz')
        expect(await resident()).toBeLessThan(1024 * mib)
      }
      expect(await ended).toEqual([0, null])
      expect(await type('systemctl show -P MainPID postern')).toBe(main)
    },
    180_000,
  )
})
