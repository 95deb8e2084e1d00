import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { ask } from './ask.ts'
import { type Child, freePort, listening, startChild, temporaryFolder } from './child.ts'
import { type Program, sourceProgram, stateFolder } from './program.ts'

/** The password of the device that the sidecar stands in front of. */
export const PASSWORD = 'correct horse battery staple'

export interface SidecarOptions {
  /** The URL of the device. */
  readonly device: string
  readonly tls: boolean
  /** Keys laid over the defaults, as in the YAML file. */
  readonly limits?: Readonly<
    Record<'api' | 'oauth', { readonly requests?: number; readonly window?: string }>
  >
  /** `key=value` each, stronger than all else. */
  readonly set?: readonly string[]
  readonly core?: number | undefined
  /** The source where nothing else is given. */
  readonly program?: Program | undefined
}

export interface RunningSidecar {
  readonly url: string
  /** Where its metrics are. */
  readonly admin: string
  readonly child: Child
  /** Ends it, and gives what it complained about: an exit code, standard error, log lines of level error and above. */
  stop(): Promise<string[]>
}

/** A sidecar with a port, a configuration and a state folder of its own. */
export interface LaidOutSidecar {
  readonly url: string
  readonly port: number
  /** Starts its process, and waits for nothing. The state of an earlier start is still there. */
  launch(): Promise<RunningSidecar>
}

/** Starts the real sidecar and waits until it takes connections. */
export async function startSidecar(options: SidecarOptions): Promise<RunningSidecar> {
  const sidecar = await layOutSidecar(options)
  const running = await sidecar.launch()
  await listening(sidecar.port, running.child)
  return running
}

export async function layOutSidecar(options: SidecarOptions): Promise<LaidOutSidecar> {
  const folder = await temporaryFolder()
  const port = await freePort()
  const adminPort = await freePort()
  const password = join(folder, 'password')
  await writeFile(password, `${PASSWORD}\n`, { mode: 0o600 })
  const config = join(folder, 'postern.yaml')
  const yaml = {
    // The whole crowd comes from this machine, and so from one address.
    listen: {
      address: `127.0.0.1:${port}`,
      tls: options.tls ? 'auto' : 'off',
      max_connections_per_client: 10_000,
    },
    admin: { address: `127.0.0.1:${adminPort}` },
    upstream: { url: options.device },
    password: { file: password },
    state_dir: stateFolder(folder),
    shutdown_grace: '1s',
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
      const child = await startChild(
        process.execPath,
        [...program.flags(folder), program.file, 'serve', '--config', config, ...sets],
        { core: options.core, outputTo: log, env: program.env },
      )
      return { url, admin: `http://127.0.0.1:${adminPort}`, child, stop: () => stopSidecar(child, log) }
    },
  }
}

async function stopSidecar(child: Child, log: string): Promise<string[]> {
  const { code, signal } = await child.stop()
  const ended = code === 0 ? [] : [`it ended with ${code ?? signal}`]
  const lines = [...errorLines(await readFile(log, 'utf8')), ...child.complaints.split('\n')]
  return [...ended, ...lines.filter((line) => line.trim() !== '')]
}

/** An access token, for the password. */
export async function askForToken(url: string): Promise<string> {
  const answer = await ask(`${url}/oauth/token`, tokenRequest())
  if (answer.status !== 200) throw new Error(`the sidecar gives no token: ${answer.status} ${answer.body}`)
  return (JSON.parse(answer.body) as { access_token: string }).access_token // C4
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

/** The pino levels from which on somebody has to look. */
const ERROR_LEVEL = 50

function errorLines(log: string): string[] {
  return log.split('\n').filter((line) => {
    const level = /"level":(\d+)/.exec(line)?.[1]
    return level !== undefined && Number(level) >= ERROR_LEVEL
  })
}
