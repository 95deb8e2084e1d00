import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Child, freePort, listening, startChild, temporaryFolder } from './child.ts'
import { type Program, sourceProgram, stateFolder } from './program.ts'
import { requestOnce } from './request.ts'

/** The device password. */
export const PASSWORD = 'correct horse battery staple'

export interface SidecarOptions {
  /** URL of the device. */
  readonly device: string
  readonly tls: boolean
  /** Keys of `limits` that differ from the defaults. */
  readonly limits?: Readonly<
    Record<'api' | 'oauth', { readonly requests?: number; readonly window?: string }>
  >
  /** The line of the password file. Default: `PASSWORD` itself. */
  readonly password?: string
  /** Arguments of `--set`, each `key=value`. */
  readonly set?: readonly string[]
  readonly core?: number | undefined
  /** Default: the source. */
  readonly program?: Program | undefined
}

export interface RunningSidecar {
  readonly url: string
  /** URL of the admin listener, which serves the metrics. */
  readonly admin: string
  readonly child: Child
  /** Stops it. Resolves with its exit code if not 0, its standard error, and log lines of level error and above. */
  stop(): Promise<string[]>
}

/** A sidecar with its own port, configuration and state folder. */
export interface PreparedSidecar {
  readonly url: string
  readonly port: number
  /** Starts the process without waiting until it listens. Keeps the state of earlier starts. */
  launch(): Promise<RunningSidecar>
}

/** Starts the real sidecar and waits until it accepts connections. */
export async function startSidecar(options: SidecarOptions): Promise<RunningSidecar> {
  const sidecar = await prepareSidecar(options)
  const running = await sidecar.launch()
  await listening(sidecar.port, running.child)
  return running
}

export async function prepareSidecar(options: SidecarOptions): Promise<PreparedSidecar> {
  const folder = await temporaryFolder()
  const port = await freePort()
  const adminPort = await freePort()
  const password = join(folder, 'password')
  await writeFile(password, `${options.password ?? PASSWORD}\n`, { mode: 0o600 })
  const config = join(folder, 'postern.yaml')
  const yaml = {
    // All connections of a load come from one address.
    listen: {
      address: `127.0.0.1:${port}`,
      tls: options.tls ? 'auto' : 'off',
      max_connections_per_client: 10_000,
    },
    admin: { address: `127.0.0.1:${adminPort}` },
    upstream: { url: options.device },
    password: { file: password },
    state_dir: stateFolder(folder),
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  }
  await writeFile(config, JSON.stringify(yaml)) // JSON is YAML
  await mkdir(stateFolder(folder), { mode: 0o700 })
  const log = join(folder, 'log')
  const { program = sourceProgram() } = options
  const sets = (options.set ?? []).flatMap((pair) => ['--set', pair])
  const url = `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`
  return {
    url,
    port,
    async launch() {
      const [file = '', ...first] = program.command
      const child = await startChild(file, [...first, 'serve', '--config', config, ...sets], {
        core: options.core,
        outputTo: log,
        env: { ...program.env, NODE_OPTIONS: program.nodeOptions(folder) },
      })
      return { url, admin: `http://127.0.0.1:${adminPort}`, child, stop: () => stopSidecar(child, log) }
    },
  }
}

async function stopSidecar(child: Child, log: string): Promise<string[]> {
  // Longer than a stop takes with requests in flight.
  const { code, signal } = await child.stop(15_000)
  const exit = code === 0 ? [] : [`the sidecar exited with ${code ?? signal}`]
  const lines = [...errorLines(await readFile(log, 'utf8')), ...child.errorOutput.split('\n')]
  return [...exit, ...lines.filter((line) => line.trim() !== '')]
}

/** Logs in with the password. Resolves with the access token. */
export async function askForToken(url: string): Promise<string> {
  const { status, body } = await requestOnce(`${url}/oauth/token`, tokenRequest())
  if (status !== 200) throw new Error(`the sidecar issues no token: ${status} ${body}`)
  return (JSON.parse(body) as { access_token: string }).access_token // C4
}

/** The password grant (C3). */
export function tokenRequest(password: string = PASSWORD): {
  readonly method: 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
} {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ grant_type: 'password', password }).toString(),
  }
}

/** pino level `error`. */
const ERROR_LEVEL = 50

function errorLines(log: string): string[] {
  return log.split('\n').filter((line) => {
    const level = /"level":(\d+)/.exec(line)?.[1]
    return level !== undefined && Number(level) >= ERROR_LEVEL
  })
}
