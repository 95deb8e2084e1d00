import { once } from 'node:events'
import { cpSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { makeExecutable } from '../../deploy/build/executable.ts'
import { FLOODS } from '../support/memory-floods.ts'
import { replaceIn, shellBlock } from '../support/pages.ts'
import { installedBundle } from '../support/shipped.ts'
import { isInstalled } from '../support/tools.ts'
import { addDevice, LIBRARIES, minimal, type Operator, operatorOf, PASSWORD } from './equipment.ts'
import { bootMachine, installDebian, type Machine, needsMachine } from './machine.ts'

const REPOSITORY = join(import.meta.dirname, '..', '..')
const TOOLS = ['systemd-nspawn', 'nsenter']
const PROCESSOR = process.arch === 'arm64' ? 'arm64' : 'x64'
const PROGRAM = join(REPOSITORY, 'test', 'support', 'memory-floods.ts')

/** How long a flood lasts, and when after it the memory is measured (s). */
const SECONDS = 30
/** The most that the memory may then be above idle (KiB). */
const LEFT = 40 * 1024

let machine: Machine | undefined
let type: Operator['type']
let ask: Operator['ask']
let token: string

async function prepare(): Promise<void> {
  const root = await installDebian(minimal('libatomic1', 'libstdc++6'))
  const checkout = join(root, 'root')
  cpSync(join(REPOSITORY, 'deploy'), join(checkout, 'deploy'), { recursive: true })
  mkdirSync(join(checkout, 'dist'))
  const executable = join(checkout, 'dist', `postern-linux-${PROCESSOR}`)
  await makeExecutable(join(installedBundle(), 'dist'), PROCESSOR, executable)
  addDevice(root)
  machine = await bootMachine(root)
  const operator = operatorOf(machine)
  ;({ type, ask } = operator)
  await type(LIBRARIES)
  const block = shellBlock('docs/installing.md', 'useradd')
  await type(replaceIn(block, 'postern-linux-x64', `postern-linux-${PROCESSOR}`))
  await type(shellBlock('docs/installing.md', 'asks twice'), `${PASSWORD}\n`)
  token = await operator.logIn()
}

const resident = async (): Promise<number> =>
  Number(
    await type(
      "sed -n 's/^RssAnon:[^0-9]*\\([0-9]*\\) kB$/\\1/p' /proc/$(systemctl show -P MainPID postern)/status",
    ),
  )

/** The unit with so much memory (MiB), without limits for the good client. */
async function restart(mib: number): Promise<void> {
  const override = '/run/systemd/system/postern.service.d'
  await type(
    `mkdir -p ${override} && printf '[Service]\\nMemoryMax=${mib}M\\nEnvironment=POSTERN_LIMITS_API_REQUESTS=1000000\\nEnvironment=POSTERN_LIMITS_OAUTH_REQUESTS=1000000\\n' > ${override}/memory.conf && systemctl daemon-reload && systemctl restart postern`,
  )
}

describe.each([128, 256, 512])('The unit with MemoryMax=%iM', (mib) => {
  beforeAll(async () => {
    if (process.getuid?.() !== 0 || !['mmdebstrap', ...TOOLS].every(isInstalled)) return
    if (machine === undefined) await prepare()
    await restart(mib)
  }, 900_000)

  it.each(Object.keys(FLOODS))(
    'H250 survives half a minute of a flood (%s), and a client at another address loses nothing',
    async (flood) => {
      needsMachine(...TOOLS)
      expect(await ask(token)).toBe('device\n200')
      const main = await type('systemctl show -P MainPID postern')
      const idle = await resident()
      const args = [PROGRAM, flood, `--token=${token}`, '--seconds', String(SECONDS)]
      const flooding = (machine ?? expect.fail('no machine')).spawnBeside([process.execPath, ...args])
      const ended = once(flooding, 'exit')
      while (flooding.exitCode === null) {
        expect(await ask(token)).toBe('device\n200')
        await type('curl -fsS -m 1 http://127.0.0.1:9464/healthz')
        await delay(200)
      }
      await ended
      expect(await type('systemctl show -P MainPID postern')).toBe(main)
      await delay(1_000 * SECONDS)
      expect((await resident()) - idle).toBeLessThan(LEFT)
    },
    180_000,
  )
})
