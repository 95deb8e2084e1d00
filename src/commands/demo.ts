import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSidecar } from '../compose/sidecar.ts'
import { parseAddress } from '../config/address.ts'
import { loadConfig, readConfigFile } from '../config/load.ts'
import { hashPassword } from '../password/key-derivation.ts'
import { createLog, finishLog, type LogSink } from '../record/log.ts'
import type { Clock } from '../system/clock.ts'
import { SetupError } from '../system/setup-error.ts'
import type { DaemonIo, ExitCode } from './command.ts'
import { createSampleDevice, type SampleDevice } from './demo/sample-device.ts'
import { renderWalkthrough, walkthrough } from './demo/walkthrough.ts'

export interface DemoOptions {
  /** `host:port`: runs only the sample device, there. */
  readonly device?: string
  /** Port of the public listener. Default: 8443, or a free port if it is taken. */
  readonly port?: number
  /** Port of the admin listener. Default: 9464, or a free port if it is taken. */
  readonly adminPort?: number
}

/** The parts of the process that the demo uses, without the environment. */
export interface DemoIo extends Pick<DaemonIo, 'stdout' | 'stderr' | 'logSink' | 'onStop'> {
  readonly clock: Clock
  /** The path of the running Node.js, for the commands that the demo prints; undefined if Node is part of the program. */
  readonly node: string | undefined
  /** The words that start this program again, for the commands that the demo prints. */
  readonly program: readonly string[]
}

const defaultPort = 8443
const defaultAdminPort = 9464
const stopGraceMs = 1000

/**
 * Runs a sample device with the real sidecar in front of it, prints commands to try, and waits for a signal to stop. All its files
 * are in one private temporary folder, which is removed before this resolves. Resolves to the exit code.
 */
export async function demoCommand(options: DemoOptions, io: DemoIo): Promise<ExitCode> {
  const stopped = new Promise<void>((resolve) => io.onStop(resolve))
  const device = createSampleDevice({ clock: io.clock })
  if (options.device !== undefined) {
    if (options.port !== undefined || options.adminPort !== undefined) {
      throw new SetupError('--device runs no sidecar, so it goes neither with --port nor with --admin-port')
    }
    return runAlone({ device, address: options.device, stopped }, io)
  }
  let folder: DemoFolder | undefined
  let sidecar: RunningSidecar | undefined
  try {
    const upstream = await device.start()
    const password = generatePassword()
    folder = await makeDemoFolder({
      upstream,
      port: options.port ?? (await portOrAny(defaultPort)),
      adminPort: options.adminPort ?? (await portOrAny(defaultAdminPort)),
      passwordHash: await hashPassword(password),
    })
    sidecar = await startSidecar(folder.configFile, io)
    io.stdout.write(describe({ folder, sidecar, password, upstream, io, options }))
    await stopped
    return 0
  } finally {
    await sidecar?.stop(stopGraceMs)
    await device.stop()
    await folder?.remove()
  }
}

interface Alone {
  readonly device: SampleDevice
  readonly address: string
  readonly stopped: Promise<void>
}

async function runAlone({ device, address, stopped }: Alone, { stdout }: DemoIo): Promise<ExitCode> {
  const parsed = parseAddress(address)
  if ('problem' in parsed || parsed.value.kind !== 'tcp') {
    throw new SetupError('--device: must be host:port or [IPv6]:port, such as 127.0.0.1:8080')
  }
  const url = await device.start(parsed.value)
  stdout.write(`Sample device on ${url}, without login and limits. Try: curl ${url}/api/system\n`)
  await stopped
  await device.stop()
  return 0
}

interface Running {
  readonly folder: DemoFolder
  readonly sidecar: RunningSidecar
  readonly password: string
  readonly upstream: string
  readonly io: DemoIo
  readonly options: DemoOptions
}

function describe({ folder, sidecar, password, upstream, io, options }: Running): string {
  const moved = [
    ...movedNote(options.port, defaultPort, sidecar.publicUrl),
    ...movedNote(options.adminPort, defaultAdminPort, sidecar.adminUrl),
  ]
  const steps = walkthrough({
    publicUrl: sidecar.publicUrl,
    adminUrl: sidecar.adminUrl,
    certificate: folder.certificate,
    configFile: folder.configFile,
    password,
    node: io.node,
    program: io.program,
  })
  return `
Postern demo: a sample device, and the real sidecar in front of it.
${moved.join('')}
  API            ${sidecar.publicUrl}
  Live page      ${sidecar.adminUrl}/
  Metrics        ${sidecar.adminUrl}/metrics
  Password       ${password}   (made for this run, shown only here)
  Configuration  ${folder.configFile}
  Certificate    ${folder.certificate}
  Device itself  ${upstream}   (no login, no limits)

Copy these into another terminal, from top to bottom:

${renderWalkthrough(steps)}
Ctrl-C stops the demo and removes ${folder.path}.

`
}

/** A note if a default port is taken. With a port that the user chose, the start fails instead. */
function movedNote(asked: number | undefined, wanted: number, url: string): string[] {
  const port = new URL(url).port
  if (asked !== undefined || port === String(wanted)) return []
  return [`Port ${wanted} is taken on this machine; using ${port} instead.\n`]
}

export interface RunningSidecar {
  /** With the name in the self-signed certificate: `https://localhost:8443`. */
  readonly publicUrl: string
  readonly adminUrl: string
  readonly stop: (graceMs: number) => Promise<void>
}

export interface SidecarDependencies {
  readonly clock: Clock
  readonly logSink: LogSink
}

/**
 * Starts a sidecar from a configuration file as `postern serve` does, but ignores the environment: variables for a real device
 * must not affect the demo.
 */
export async function startSidecar(file: string, around: SidecarDependencies): Promise<RunningSidecar> {
  const config = loadConfig({ file: readConfigFile(file) })
  const log = await createLog(config.log, around.logSink)
  const sidecar = await createSidecar(config, { clock: around.clock, log })
  const stop = async (graceMs: number): Promise<void> => {
    await sidecar.stop(graceMs)
    await finishLog(log)
  }
  try {
    const addresses = await sidecar.start()
    return {
      publicUrl: addresses.public.replace('//127.0.0.1:', '//localhost:'),
      adminUrl: addresses.admin ?? 'off',
      stop,
    }
  } catch (error) {
    await stop(0)
    throw error
  }
}

/** `wanted` if that port of 127.0.0.1 is free, else 0, with which the kernel chooses a free port. */
export function portOrAny(wanted: number): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(0))
    probe.listen(wanted, '127.0.0.1', () => probe.close(() => resolve(wanted)))
  })
}

interface DemoSettings {
  readonly upstream: string
  readonly port: number
  readonly adminPort: number
  readonly passwordHash: string
}

interface DemoFolder {
  readonly path: string
  readonly configFile: string
  readonly certificate: string
  readonly remove: () => Promise<void>
}

/** Creates the folder with a configuration file and a password file. Removes it again on failure. */
export async function makeDemoFolder(settings: DemoSettings): Promise<DemoFolder> {
  // mkdtemp creates it with mode 0700: no other user can read it or plant a symbolic link in it.
  const path = await mkdtemp(join(tmpdir(), 'postern-demo-'))
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true })
  const stateDir = join(path, 'state')
  const configFile = join(path, 'postern.yaml')
  const passwordFile = join(path, 'password')
  try {
    await mkdir(stateDir, { mode: 0o700 })
    await writeFile(passwordFile, `${settings.passwordHash}\n`, { mode: 0o600, flag: 'wx' })
    const config = demoConfig(settings, { passwordFile, stateDir })
    await writeFile(configFile, config, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    await remove()
    throw error
  }
  return { path, configFile, certificate: join(stateDir, 'tls', 'cert.pem'), remove }
}

function demoConfig(settings: DemoSettings, paths: { passwordFile: string; stateDir: string }): string {
  // A JSON string is also a YAML double-quoted string, so any path is quoted correctly.
  // Without access lines: they would bury the commands that the demo asks to copy.
  return `# Written by "postern demo". All other keys have their defaults.
listen:
  address: 127.0.0.1:${settings.port}
admin:
  address: 127.0.0.1:${settings.adminPort}
upstream:
  url: ${settings.upstream}
password:
  file: ${JSON.stringify(paths.passwordFile)}
state_dir: ${JSON.stringify(paths.stateDir)}
realm: demo
log: {access: false}
`
}

const typeable = '0123456789abcdefghjkmnpqrstvwxyz'

/** A password of 75 random bits in Crockford's base 32, which has no two characters that look alike. */
export function generatePassword(random: (size: number) => Uint8Array = randomBytes): string {
  const letters = Array.from(random(15), (byte) => typeable[byte % typeable.length] ?? '0')
  return [letters.slice(0, 5), letters.slice(5, 10), letters.slice(10)].map((part) => part.join('')).join('-')
}
