import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSidecar } from '../compose/sidecar.ts'
import { parseAddress } from '../config/address.ts'
import { loadConfig, readConfigFile } from '../config/load.ts'
import { hashPassword } from '../password/key-derivation.ts'
import { SetupError } from '../system/setup-error.ts'
import { shellWord } from '../system/text.ts'
import type { DaemonIo, ExitCode, ProgramIo } from './command.ts'
import { createSampleDevice, type SampleDevice } from './demo/sample-device.ts'
import { type WalkthroughSettings, walkthrough } from './demo/walkthrough.ts'

export interface DemoOptions {
  /** `host:port`: runs only the sample device, there. */
  readonly device?: string
  /** Port of the public listener. Default: 8443, or a free port if it is taken. */
  readonly port?: number
  /** Port of the admin listener. Default: 9464, or a free port if it is taken. */
  readonly adminPort?: number
}

/** The parts of the process that the demo uses, without the environment. */
interface DemoIo
  extends Pick<DaemonIo, 'stdout' | 'stderr' | 'clock' | 'openLog' | 'onStop'>,
    Pick<ProgramIo, 'node' | 'program'> {}

const PORT = 8443
const ADMIN_PORT = 9464
const STOP_GRACE = 1000

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
    return runAlone(device, options.device, stopped, io)
  }
  // mkdtemp creates the folder with mode 0700: no other user can read it or plant a symbolic link in it.
  const folder = await mkdtemp(join(tmpdir(), 'postern-demo-'))
  await using opened = new AsyncDisposableStack()
  opened.defer(() => rm(folder, { recursive: true, force: true }))
  const upstream = await device.start()
  opened.defer(device.stop)
  const password = generatePassword()
  const configFile = await writeDemoFiles(folder, {
    upstream,
    port: options.port ?? (await portOrAny(PORT)),
    adminPort: options.adminPort ?? (await portOrAny(ADMIN_PORT)),
    passwordHash: await hashPassword(password),
  })
  // The environment is left out, because variables for a real device must not affect the demo.
  const config = loadConfig({ file: readConfigFile(configFile) })
  const log = await io.openLog(config.log)
  opened.use(log.destination)
  const sidecar = await createSidecar(config, { clock: io.clock, ...log })
  opened.defer(() => sidecar.stop(STOP_GRACE))
  const addresses = await sidecar.start()
  const running = {
    folder,
    upstream,
    configFile,
    password,
    // The name in the self-signed certificate.
    publicUrl: addresses.public.replace('//127.0.0.1:', '//localhost:'),
    adminUrl: addresses.admin ?? 'off',
    certificate: join(folder, 'state', 'tls', 'cert.pem'),
    node: io.node,
    program: io.program,
  }
  io.stdout.write(describe(running, options))
  await stopped
  return 0
}

async function runAlone(
  device: SampleDevice,
  address: string,
  stopped: Promise<void>,
  { stdout }: DemoIo,
): Promise<ExitCode> {
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

interface Running extends WalkthroughSettings {
  readonly folder: string
  readonly upstream: string
}

function describe(running: Running, options: DemoOptions): string {
  const { folder, publicUrl, adminUrl, configFile, certificate, password, upstream } = running
  const moved = [
    ...movedNote(options.port, PORT, publicUrl),
    ...movedNote(options.adminPort, ADMIN_PORT, adminUrl),
  ]
  return `
Postern demo: a sample device, and the real sidecar in front of it.
${moved.join('')}
  API            ${publicUrl}
  Live page      ${adminUrl}/
  Metrics        ${adminUrl}/metrics
  Password       ${password}   (made for this run, shown only here)
  Configuration  ${configFile}
  Certificate    ${certificate}
  Device itself  ${upstream}   (no login, no limits)

Copy these into another terminal, from top to bottom:

${walkthrough(running)}
Ctrl-C stops the demo and removes ${folder}.

Next, for a device of your own: this asks for its address and its password,
tries both, and writes postern.yaml.

${running.program.map(shellWord).join(' ')} init

`
}

/** A note if a default port is taken. With a port that the user chose, the start fails instead. */
function movedNote(asked: number | undefined, wanted: number, url: string): string[] {
  const port = new URL(url).port
  if (asked !== undefined || port === String(wanted)) return []
  return [`Port ${wanted} is taken on this machine; using ${port} instead.\n`]
}

/** `wanted` if that port of 127.0.0.1 is free, else 0, for which the kernel chooses a free port. */
function portOrAny(wanted: number): Promise<number> {
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

/** Writes the password file and the configuration, makes the state directory, and resolves to the path of the configuration. */
export async function writeDemoFiles(folder: string, settings: DemoSettings): Promise<string> {
  const [passwordFile, stateDir] = [join(folder, 'password'), join(folder, 'state')]
  const configFile = join(folder, 'postern.yaml')
  await mkdir(stateDir, { mode: 0o700 })
  await writeFile(passwordFile, `${settings.passwordHash}\n`, { mode: 0o600 })
  // A JSON string is also a YAML double-quoted string, so any path is quoted correctly.
  // The log has no access lines, which would bury the commands to copy.
  const config = `# Written by "postern demo". All other keys have their defaults.
listen:
  address: 127.0.0.1:${settings.port}
admin:
  address: 127.0.0.1:${settings.adminPort}
upstream:
  url: ${settings.upstream}
password:
  file: ${JSON.stringify(passwordFile)}
limits:
  wrong_passwords: slow
state_dir: ${JSON.stringify(stateDir)}
realm: demo
log: {access: false}
`
  await writeFile(configFile, config, { mode: 0o600 })
  return configFile
}

const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz'

/** A password of 75 random bits in Crockford's base 32, which has no two characters that look alike. */
export function generatePassword(random: (size: number) => Uint8Array = randomBytes): string {
  const letters = Array.from(random(15), (byte) => LETTERS[byte % LETTERS.length] ?? '0')
  return [letters.slice(0, 5), letters.slice(5, 10), letters.slice(10)].map((part) => part.join('')).join('-')
}
