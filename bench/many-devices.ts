import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { loadavg } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { privateMemory, processorTime } from './process-usage.ts'
import { unitEnvironment } from './unit-environment.ts'

// `node bench/many-devices.ts EXECUTABLE`, as root: what many devices on one host take. It makes an instance for each by `postern init
// --instance`, starts one after the other as postern-device@.service does, and measures them while they are idle. One does not start, and the
// device of another one is off. /etc/postern and /var/lib/postern are empty folders in memory for this process and its children alone.

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    devices: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '120' },
    inside: { type: 'boolean', default: false },
  },
})
const [executable = ''] = positionals
const [devices, seconds] = [Number(values.devices), Number(values.seconds)]
const SELF = fileURLToPath(import.meta.url)
const PLACES = ['/etc/postern', '/var/lib/postern'] as const
const [ETC] = PLACES
const UNIT = readFileSync(new URL('../deploy/postern-device@.service', import.meta.url), 'utf8')
const CGROUP = '/sys/fs/cgroup/memory/postern-many-devices'

if (!values.inside) {
  for (const folder of PLACES) mkdirSync(folder, { recursive: true })
  const args = [
    '--mount',
    '--propagation',
    'private',
    process.execPath,
    SELF,
    '--inside',
    ...process.argv.slice(2),
  ]
  const child = spawn('unshare', args, { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  process.exit(code ?? 1)
}

for (const folder of PLACES) execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', folder])
const program = resolve(executable)
const say = (text: string): void => void process.stdout.write(`${text}\n`)

const device = createServer((_request, response) => response.end('device\n')).listen(0, '127.0.0.1')
await once(device, 'listening')
const bound = device.address()
const port = typeof bound === 'object' ? bound?.port : undefined

function postern(...args: readonly string[]): string {
  return execFileSync(program, args, {
    encoding: 'utf8',
    input: 'correct horse battery staple\n',
    stdio: ['pipe', 'pipe', 'ignore'],
  })
}

const names = Array.from({ length: devices }, (_, i) => `device-${i + 1}`)
const [OFF, BROKEN] = [names[Math.floor(devices / 2)] ?? '', 'broken']
writeFileSync(join(ETC, 'password'), postern('hash-password'), { mode: 0o600 })
for (const name of [...names, BROKEN]) {
  const url = `http://127.0.0.1:${name === OFF ? 1 : port}`
  postern('init', '--instance', name, '--url', url, '--password-file', join(ETC, 'password'), '--skip-checks')
}
appendFileSync(join(ETC, 'devices', `${BROKEN}.yaml`), 'upstraem: {}\n')

const limit = /^MemoryMax=(\d+)M$/m.exec(UNIT)?.[1]
const env = { PATH: process.env.PATH, ...unitEnvironment(UNIT) }
let isBounded = true

/** Starts an instance as the unit does, in a cgroup with its share of memory if this machine has cgroups of version 1. */
function start(name: string): ChildProcess {
  const cgroup = `${CGROUP}-${name}`
  try {
    mkdirSync(cgroup, { recursive: true })
    writeFileSync(join(cgroup, 'memory.limit_in_bytes'), `${limit}M`)
  } catch {
    isBounded = false
  }
  const join_ = `echo $$ > ${cgroup}/cgroup.procs 2>/dev/null; exec "$0" "$@"`
  return spawn('sh', ['-c', join_, program, 'serve', '--instance', name], {
    stdio: ['ignore', 'ignore', 'ignore'],
    env,
  })
}

/** Waits as the unit does; false: the sidecar has ended. */
async function isUp(name: string, child: ChildProcess): Promise<boolean> {
  for (;;) {
    if (child.exitCode !== null) return false
    try {
      postern('healthy', '--instance', name)
      return true
    } catch {
      await delay(50)
    }
  }
}

interface Running {
  readonly name: string
  readonly pid: number
  readonly child: ChildProcess
}

const running: Running[] = []
let started = 0
for (const name of [...names.slice(0, devices / 2), BROKEN, ...names.slice(devices / 2)]) {
  const child = start(name)
  const up = await isUp(name, child)
  if (!up) {
    say(`${name} ended with ${child.exitCode}`)
    continue
  }
  const pid = child.pid ?? 0
  running.push({ name, pid, child })
  started += processorTime(pid)
}
const each = (measure: (pid: number) => number): readonly number[] => running.map(({ pid }) => measure(pid))
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0)
const range = (numbers: readonly number[], digits: number): string =>
  `${Math.min(...numbers).toFixed(digits)} to ${Math.max(...numbers).toFixed(digits)}`

/** The proportional share of a process in all memory that it uses (MiB): shared pages count once in the sum of all. */
function shareOfMemory(pid: number): number {
  return Number(/^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]) / 1024
}

say(
  `${running.length} of ${devices + 1} run; each bounded by ${isBounded ? `${limit} MiB` : 'the machine alone'}`,
)
say(
  `processor time of a start: ${(started / running.length).toFixed(0)} ms each, ${(started / 1000).toFixed(1)} s for all, one after the other`,
)
await delay(60_000)
const before = each(processorTime)
const begun = performance.now()
await delay(seconds * 1000)
const passed = (performance.now() - begun) / 1000
const used = each(processorTime).map((time, i) => (time - (before[i] ?? 0)) / passed)
say(
  `idle for ${passed.toFixed(0)} s: ${range(used, 2)} ms of processor time a second each, ${sum(used).toFixed(0)} for all; load average ${loadavg()[0]?.toFixed(1)}`,
)
const own = each(privateMemory)
say(`private memory: ${range(own, 1)} MiB each, ${sum(own).toFixed(0)} for all`)
try {
  say(`with the shared pages, each counted once: ${sum(each(shareOfMemory)).toFixed(0)} MiB`)
} catch {
  say('this kernel does not tell how pages are shared')
}
const answers = running.map(({ name }) => postern('healthy', '--instance', name))
say(`${answers.filter((text) => text.startsWith('ok')).length} answer healthy; the device of ${OFF} is off`)
for (const { child } of running) child.kill('SIGTERM')
await Promise.all(
  running.map(({ child }) =>
    child.exitCode === null && child.signalCode === null ? once(child, 'exit') : undefined,
  ),
)
for (const name of [...names, BROKEN]) execFileSync('rmdir', [`${CGROUP}-${name}`], { stdio: 'ignore' })
device.close()
