import { hashPassword } from '../password/key-derivation.ts'
import type { Clock } from '../system/clock.ts'
import { type DemoFolder, generatePassword, makeDemoFolder } from './demo/demo-folder.ts'
import { portOrAny } from './demo/free-port.ts'
import { createSampleDevice } from './demo/sample-device.ts'
import { type RunningSidecar, startSidecar } from './demo/sidecar-run.ts'
import { renderWalkthrough, walkthrough } from './demo/walkthrough.ts'
import type { ExitCode, ServiceIo } from './io.ts'

export interface DemoOptions {
  /** Port of the public listener; 8443, or any free one where that is taken. */
  readonly port?: number
  /** Port of the admin listener; 9464, or any free one where that is taken. */
  readonly adminPort?: number
}

/** What the demo needs of the process it runs in. The environment is not among it. */
export interface DemoIo extends Pick<ServiceIo, 'stdout' | 'stderr' | 'logSink' | 'onStop'> {
  readonly clock: Clock
  /** The path of the running Node.js, for the commands to copy. */
  readonly node: string
}

const defaultPort = 8443
const defaultAdminPort = 9464
const stopGraceMs = 1000

/**
 * Runs a sample device and the real sidecar before it, prints what to type, and waits to be stopped. Everything it
 * writes lies in one private temporary folder, which is gone when this resolves. Resolves to the exit code.
 */
export async function demoCommand(options: DemoOptions, io: DemoIo): Promise<ExitCode> {
  const stopped = new Promise<void>((resolve) => io.onStop(resolve))
  const device = createSampleDevice({ clock: io.clock })
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
    io.stdout.write(describe({ folder, sidecar, password, upstream, node: io.node, options }))
    await stopped
    return 0
  } finally {
    await sidecar?.stop(stopGraceMs)
    await device.stop()
    await folder?.remove()
  }
}

interface Running {
  readonly folder: DemoFolder
  readonly sidecar: RunningSidecar
  readonly password: string
  readonly upstream: string
  readonly node: string
  readonly options: DemoOptions
}

function describe({ folder, sidecar, password, upstream, node, options }: Running): string {
  const moved = [
    ...movedNote(options.port, defaultPort, sidecar.publicUrl),
    ...movedNote(options.adminPort, defaultAdminPort, sidecar.adminUrl),
  ]
  const steps = walkthrough({
    publicUrl: sidecar.publicUrl,
    adminUrl: sidecar.adminUrl,
    certificate: folder.certificate,
    password,
    node,
  })
  return `
Postern demo: a sample device, and the real sidecar in front of it.
${moved.join('')}
  API            ${sidecar.publicUrl}
  Metrics        ${sidecar.adminUrl}/metrics
  Password       ${password}   (made for this run, shown only here)
  Configuration  ${folder.configFile}
  Certificate    ${folder.certificate}
  Device itself  ${upstream}   (no login, no limits: that is the point)

Copy these into another terminal, from top to bottom:

${renderWalkthrough(steps)}
Ctrl-C stops the demo and removes ${folder.path}.

`
}

/** Tells that a default port was taken. A port that the user chose is used or fails. */
function movedNote(asked: number | undefined, wanted: number, url: string): string[] {
  const port = new URL(url).port
  if (asked !== undefined || port === String(wanted)) return []
  return [`Port ${wanted} is taken on this machine; using ${port} instead.\n`]
}
