import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { readLog, type Served } from '../process/serve.ts'
import { temporaryDirectory } from '../support/certificate.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Run, run } from '../support/tools.ts'
import type { Image } from './image.ts'

/** A file or folder of the host, and where the container sees it. */
export interface Mount {
  readonly source: string
  readonly destination: string
  readonly write?: boolean
}

export interface Container extends Pick<Served, 'waitForLog'> {
  /** Waits for a line on standard output that begins so. */
  readonly output: (start: string) => Promise<string>
  /** The id of its first process, outside of the container. */
  readonly pid: () => Promise<number>
  /** Runs a program in the container to its end. */
  readonly exec: (...command: readonly string[]) => Promise<Run>
  readonly signal: (name: string) => Promise<Run>
  /** The exit code and all of standard error, when it has ended. */
  readonly ended: Promise<readonly [code: number | null, stderr: string]>
}

/**
 * crun refuses to start where cgroup v2 is mounted beside v1, as systemd's hybrid mode does. So it gets mounts of its own, and
 * leaves cgroups alone.
 */
const CRUN = 'umount -l /sys/fs/cgroup/unified 2>/dev/null; exec crun --cgroup-manager=disabled "$@"'

export interface ContainerOptions {
  readonly mounts?: readonly Mount[]
  /** In place of the command of the image. */
  readonly command?: readonly string[]
  /** Added to the environment of the image. */
  readonly env?: Readonly<Record<string, string>>
  /** A network of its own, with loopback alone, or that of the process with this id. Default: the network of the host. */
  readonly network?: 'own' | number
}

/**
 * Starts an image as an operator should: its user, no capability, no new privileges, and a read-only root. It is killed when the
 * test ends.
 */
export function startContainer(image: Image, options: ContainerOptions = {}): Container {
  const bundle = temporaryDirectory()
  const name = bundle.replaceAll('/', '-').slice(1)
  mkdirSync(join(bundle, 'state'))
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(specification(image, options)))
  const crun = (...args: readonly string[]): readonly string[] => [
    ...['--mount', 'sh', '-c', CRUN, 'sh', `--root=${join(bundle, 'state')}`],
    ...args,
  ]
  const ask = (...args: readonly string[]): Promise<Run> => run('unshare', crun(...args))
  const child: ChildProcess = spawn('unshare', crun('run', `--bundle=${bundle}`, name), {
    // crun passes each signal on to the container, also SIGCONT.
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stderr = child.stderr === null ? Promise.resolve('') : text(child.stderr)
  const closed = once(child, 'close')
  closeLater(async () => {
    if (child.exitCode === null) await ask('kill', name, 'KILL')
    await closed
  })
  const { lines, waitForLog } = readLog(child, stderr)
  return {
    waitForLog,
    output: async (start) => {
      for (;;) {
        const line = lines.find((each) => each.startsWith(start))
        if (line !== undefined) return line
        if (child.stdout === null || child.exitCode !== null) throw new Error(await stderr)
        await once(child.stdout, 'data')
      }
    },
    pid: async () => JSON.parse((await ask('state', name)).stdout).pid,
    exec: (...program) => ask('exec', `--user=${image.config.User}`, name, ...program),
    signal: (signal) => ask('kill', name, signal),
    ended: closed.then(async () => [child.exitCode, await stderr] as const),
  }
}

/** The specification of an OCI runtime for a configuration of an image. */
function specification({ config, files }: Image, options: ContainerOptions): object {
  const { mounts = [], command = config.Cmd, env = {}, network } = options
  const own = ['pid', 'ipc', 'uts', 'mount', ...(network === 'own' ? ['network'] : [])].map((type) => ({
    type,
  }))
  const joined = typeof network === 'number' ? [{ type: 'network', path: `/proc/${network}/ns/net` }] : []
  const [uid, gid] = config.User.split(':').map(Number)
  return {
    ociVersion: '1.0.0',
    process: {
      user: { uid, gid },
      args: [...config.Entrypoint, ...command],
      env: [...config.Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
      cwd: '/',
      capabilities: {},
      noNewPrivileges: true,
    },
    root: { path: files, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
      ...mounts.map(({ source, destination, write = false }) => ({
        destination,
        type: 'bind',
        source,
        options: ['bind', write ? 'rw' : 'ro'],
      })),
    ],
    linux: { namespaces: [...own, ...joined] },
  }
}
