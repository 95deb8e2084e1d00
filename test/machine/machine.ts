import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { childrenOf } from '../support/processes.ts'
import { runningTest } from '../support/running-test.ts'
import { needs, type Run, run } from '../support/tools.ts'
import { makeCgroup } from './cgroup.ts'
import { madeOnce } from './made-once.ts'

/** A Debian with systemd as process 1, in a container that shares only the kernel. It has a loopback interface and no other. */
export interface Machine {
  /** Its file system. */
  readonly root: string
  /** Runs a shell command as root, with nothing of the test's environment. */
  run(command: string, input?: string): Promise<Run>
  /** Starts a program of the host in the network of the machine. It is killed when the test ends. */
  spawnBeside(command: readonly string[]): ChildProcess
  /** Shuts systemd down and starts the machine again. */
  reboot(): Promise<void>
  /** Kills every process of the machine at once, as a power cut does, and starts it again. What was written stays, flushed or not. */
  cutPower(): Promise<void>
}

const HOST_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** A test that makes a machine calls this first: it skips without root or without these programs, as `needs` does. */
export function needsMachine(...tools: readonly string[]): void {
  if (process.getuid?.() !== 0) {
    if (process.env.POSTERN_TEST_ALL === '1') throw new Error('the tests of machines take root')
    runningTest()?.skip('it takes root')
  }
  for (const tool of ['mmdebstrap', 'dpkg-deb', ...tools]) needs(tool)
}

/** Installs Debian 12 as a new folder or, if its name ends in `.tar`, an archive. `args` are further arguments of mmdebstrap. */
export async function installDebian(args: readonly string[], root: string): Promise<string> {
  // Nothing of this machine outlives the test, so no file needs to be flushed.
  const flags = ['--quiet', '--dpkgopt=force-unsafe-io', ...args, 'bookworm', root]
  const made = await run('mmdebstrap', flags, { timeout: 600_000, env: { PATH: HOST_PATH } })
  if (made.code !== 0) throw new Error(`mmdebstrap: ${made.stderr}`)
  return root
}

/** What `mmdebstrap` installs for a machine, and the packages (with what they need) that its apt can install later. */
const MINIMAL = [
  '--variant=minbase',
  '--include=systemd,systemd-sysv,curl',
  '--skip=cleanup/apt',
  '--customize-hook=chroot "$1" apt-get install -y --download-only adduser libatomic1 libstdc++6 redis-server jq pamtester',
]

/** A minimal Debian in a new folder, which is removed with the test. */
export async function minimalDebian(): Promise<string> {
  const archive = await madeOnce('minimal.tar', (path) => installDebian(MINIMAL, path))
  const root = join(temporaryDirectory(), 'root')
  await mkdir(root)
  const unpacked = await run('tar', ['--numeric-owner', '--xattrs', '-xpf', archive], {
    cwd: root,
    timeout: 300_000,
  })
  if (unpacked.code !== 0) throw new Error(`tar: ${unpacked.stderr}`)
  return root
}

export interface MachineOptions {
  /**
   * Whether systemd in the machine can filter the packets of a unit (`IPAddressDeny=`). That takes cgroup v2 alone, and bounds no
   * memory where the controllers of this kernel belong to v1. Default: false.
   */
  readonly filtersPackets?: boolean
}

/** Boots the Debian in `root`. The machine is killed when the test ends: a shutdown takes seconds, and is not what is tested. */
export async function bootMachine(root: string, options: MachineOptions = {}): Promise<Machine> {
  let running = start(root, options)
  closeLater(() => running.kill())
  let leader = await running.booted
  const startAgain = async (): Promise<void> => {
    running = start(root, options)
    leader = await running.booted
  }
  return {
    root,
    run: (command, input) => runInside(leader, command, input),
    spawnBeside(command) {
      const child = spawn('nsenter', ['--target', String(leader), '--net', ...command], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      closeLater(() => void child.kill('SIGKILL'))
      return child
    },
    async reboot() {
      await running.stop()
      await startAgain()
    },
    async cutPower() {
      await running.kill()
      await startAgain()
    },
  }
}

/** What runs a machine. */
interface Running {
  /** The process id of its systemd, when it has booted. */
  readonly booted: Promise<number>
  /** Shuts it down. */
  readonly stop: () => Promise<void>
  readonly kill: () => Promise<void>
}

function start(root: string, { filtersPackets = false }: MachineOptions): Running {
  const name = basename(dirname(root))
  const cgroup = makeCgroup(name)
  const [program = '', ...args] = [
    ...cgroup.prefix,
    'systemd-nspawn',
    '--quiet',
    '--register=no',
    '--keep-unit',
    '--private-network',
    `--machine=${name}`,
    '--console=read-only',
    `--directory=${root}`,
    ...(filtersPackets ? ['--system-call-filter=bpf'] : []),
    '--boot',
  ]
  const child = spawn(program, args, {
    stdio: 'ignore',
    env: { PATH: HOST_PATH, ...(filtersPackets ? { SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1' } : {}) },
  })
  const ended = once(child, 'exit').then(cgroup.remove)
  return {
    booted: leaderOf(child),
    async stop() {
      child.kill('SIGTERM') // systemd-nspawn asks the systemd inside to power off
      await ended
    },
    async kill() {
      // With the first process of a namespace, the kernel kills all. systemd-nspawn ends when it has.
      const children = hasEnded(child) ? [] : childrenOf(child.pid ?? 0)
      for (const pid of children) process.kill(pid, 'SIGKILL')
      if (children.length === 0) child.kill('SIGKILL')
      await ended
    },
  }
}

/** The systemd that this systemd-nspawn has started, when it has booted. */
async function leaderOf(nspawn: ChildProcess): Promise<number> {
  for (;;) {
    // While it starts, it has more than one child, or none.
    const [leader, ...others] = childrenOf(nspawn.pid ?? 0)
    if (leader !== undefined && others.length === 0) {
      const { stdout } = await runInside(leader, 'systemctl is-system-running --wait')
      if (/^(running|degraded)/.test(stdout)) return leader
    }
    if (hasEnded(nspawn)) throw new Error(`systemd-nspawn ended with ${nspawn.exitCode ?? nspawn.signalCode}`)
    await delay(100)
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}

function runInside(leader: number, command: string, input = ''): Promise<Run> {
  const namespaces = ['--mount', '--uts', '--ipc', '--net', '--pid', '--cgroup']
  return run('nsenter', ['--target', String(leader), ...namespaces, 'sh', '-c', `cd /root\n${command}`], {
    input,
    timeout: 300_000,
    env: { PATH: HOST_PATH, HOME: '/root', DEBIAN_FRONTEND: 'noninteractive' },
  })
}
