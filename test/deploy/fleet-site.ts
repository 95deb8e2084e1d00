import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import { ENV, MAIN } from '../process/serve.ts'
import { closeLater } from '../support/cleanup.ts'
import { type Run, run } from '../support/tools.ts'

/** The services of `deploy/fleet/compose.yaml` as processes of this machine, in a network and with files of their own. */
export interface FleetSite {
  readonly folder: string
  readonly sidecars: readonly FleetSidecar[]
  /** Runs a program where the services run. */
  inside(program: string, ...args: readonly string[]): Promise<Run>
  /** Runs a command of Postern with the environment of a sidecar. */
  postern(env: Environment, command: string): Promise<Run>
  /** The status of a request without a token to the entry, from this address. */
  status(from: string): Promise<number>
  /** Logs in with the password `secret`, and returns the statuses of so many requests with the token. */
  use(from: string, count: number): Promise<readonly number[]>
  /** What the window of the client has left after such a request. */
  remaining(from: string, field?: string): Promise<number>
}

interface FleetSidecar {
  readonly env: Environment
  /** How many requests it has counted. */
  requests(): Promise<number>
  kill(): Promise<void>
}

type Environment = Readonly<Record<string, string>>

interface Compose {
  readonly services: Readonly<
    Record<string, { readonly environment?: Environment; readonly command?: readonly string[] }>
  >
}

/** Where the services find each other: all addresses of compose.yaml belong to one loopback interface. */
const SET_UP = `set -e
ip link set lo up
for address in 2 11 12; do ip address add 172.30.17.$address/24 dev lo; done
mount -t tmpfs tmpfs /run
mkdir /run/secrets
mount --bind "$1" /run/secrets
mount --bind "$1/hosts" /etc/hosts
echo ready
exec cat`

/**
 * Starts the services with the files in `folder`, as they are: the addresses, the names and the paths of the containers hold in a network
 * and a mount namespace of their own. Debian's redis-server stands in for Valkey. Needs root.
 */
export async function startFleetSite(folder: string, { services }: Compose): Promise<FleetSite> {
  writeFileSync(join(folder, 'hosts'), '127.0.0.1 localhost valkey device\n')
  const holder = spawn('unshare', ['--net', '--mount', 'sh', '-c', SET_UP, 'sh', folder])
  await closeProcess(holder, 'ready')
  const enter = ['--target', String(holder.pid), '--net', '--mount']
  const start = async (ready: string, env: Environment, program: string, ...args: readonly string[]) => {
    const child = spawn('nsenter', [...enter, program, ...args], { env: { ...ENV, ...env } })
    return closeProcess(child, ready)
  }
  const inside: FleetSite['inside'] = (program, ...args) => run('nsenter', [...enter, program, ...args])

  const data = join(folder, 'data')
  mkdirSync(data)
  await start('Ready to accept', {}, 'redis-server', join(folder, 'valkey.conf'), '--dir', data)
  const demo = services.device?.command ?? []
  await start('Sample device on', {}, process.execPath, MAIN, ...demo)
  const config = ['--config', join(folder, 'postern.yaml')]
  const sidecars = await Promise.all(
    ['postern-1', 'postern-2'].map(async (name): Promise<FleetSidecar> => {
      const env: Environment = { ...services[name]?.environment, POSTERN_STATE_DIR: join(folder, name) }
      const kill = await start('"listening"', env, process.execPath, MAIN, 'serve', ...config)
      return {
        env,
        kill,
        async requests() {
          const { stdout } = await inside('curl', '-sS', `http://${env.POSTERN_ADMIN_ADDRESS}/metrics`)
          const counts = [...stdout.matchAll(/^postern_requests_total\{.*\} (\d+)$/gm)]
          return counts.reduce((sum, [, count]) => sum + Number(count), 0)
        },
      }
    }),
  )
  // HAProxy says so when it has tried a sidecar, and before that it takes each for healthy.
  await start('Loading success', {}, 'haproxy', '-W', '-db', '-f', join(folder, 'haproxy.cfg'))

  const curl = async (from: string, ...args: readonly string[]): Promise<string> => {
    const { stdout, stderr } = await inside(
      ...(['curl', '-sS', '--cacert', join(folder, 'cert.pem')] as const),
      ...['--interface', from, ...args],
    )
    return stdout + stderr
  }
  const ask = (from: string, field = 'Accept: */*'): Promise<string> =>
    curl(from, '-D', '-', '-H', field, 'https://localhost:8443/api/system')
  const statusIn = (response: string): number =>
    Number(/^HTTP\/\S+ (\d+)/.exec(response)?.[1] ?? expect.fail(response))
  return {
    folder,
    sidecars,
    inside,
    postern: (env, command) =>
      run('nsenter', [...enter, process.execPath, MAIN, command, ...config], { env: { ...ENV, ...env } }),
    status: async (from) => statusIn(await ask(from)),
    async use(from, count) {
      const form = ['-d', 'grant_type=password', '-d', 'password=secret']
      const { access_token } = JSON.parse(await curl(from, ...form, 'https://localhost:8443/oauth/token'))
      const statuses: number[] = []
      for (let i = 0; i < count; i += 1) {
        statuses.push(statusIn(await ask(from, `Authorization: Bearer ${access_token}`)))
      }
      return statuses
    },
    async remaining(from, field) {
      const response = await ask(from, field)
      return Number(/^x-ratelimit-remaining: (\d+)/im.exec(response)?.[1] ?? expect.fail(response))
    },
  }
}

/** Waits until a process prints `ready`, and ends it with the tests. Returns how to end it before. */
async function closeProcess(child: ReturnType<typeof spawn>, ready: string): Promise<() => Promise<void>> {
  const closed = once(child, 'close')
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await closed
  }
  closeLater(kill)
  const lines: string[] = []
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue
      createInterface(stream).on('line', (line) => {
        lines.push(line)
        if (line.includes(ready)) resolve()
      })
    }
    child.once('error', reject)
    child.once('close', () => reject(new Error(`${child.spawnargs.join(' ')} ended:\n${lines.join('\n')}`)))
  })
  return kill
}
