import type { RequestOptions } from 'node:http'
import type { Whereabouts } from '../config/whereabouts.ts'
import { abortAfter, systemClock } from '../system/clock.ts'
import { formatAddress, type ListenAddress } from '../system/listen-address.ts'
import { codeOf, reasonOf, SetupError } from '../system/setup-error.ts'
import type { CommandIo, ExitCode } from './command.ts'
import type { ConfigOptions } from './configuration.ts'
import { ask, control, noResponse } from './control.ts'
import { findSidecar, reachedAt, readAdminAddress } from './find-sidecar.ts'
import type { Status } from './status.ts'

export interface HealthyOptions extends ConfigOptions {
  /** Asks whether the sidecar is ready for traffic, not only whether it responds. */
  readonly ready: boolean
  /** The address of its admin listener. With it no configuration is read. */
  readonly admin?: string
}

/** The sidecar to ask. Without `listen` its certificate is not known, and any certificate is accepted. */
interface Asked {
  readonly admin: Pick<Whereabouts['admin'], 'address' | 'tls' | 'allow'>
  readonly stateDir?: string
  readonly listen?: Whereabouts['listen']
}

function namedBy(text: string): Asked {
  const { address, secure } = readAdminAddress(text)
  return { admin: { address, tls: secure ? 'on' : 'off', allow: [] } }
}

const ASKING = { command: 'healthy', flag: '--admin' } as const

/** How long the sidecar may take to respond (ms). Health checks in containers usually allow more. */
const TIMEOUT = 3_000

/**
 * Asks the running sidecar at its `admin.address` for `/healthz`, or `/readyz` with `ready`, and prints one line. Rejects with
 * a `SetupError`: exit code 1 if the response is not 200 or none comes within 3 s, 2 if there is no address to ask.
 */
export async function healthyCommand(options: HealthyOptions, io: CommandIo): Promise<ExitCode> {
  const sidecar: Asked =
    options.admin === undefined ? findSidecar(ASKING, options, io) : namedBy(options.admin)
  const { admin } = sidecar
  const target = targetOf(admin.address)
  const path = options.ready ? '/readyz' : '/healthz'
  const where = `${path} at ${admin.address === 'off' ? 'off' : formatAddress(admin.address)}`
  const asked =
    admin.tls === 'on' ? askOverTls(target, path, certificateOf(sidecar)) : ask({ ...target, path }, TIMEOUT)
  const { status, body } = await asked.catch((error: unknown) => refuse(sidecar, where, error))
  if (status !== 200) {
    throw new SetupError(`${where} responded ${status}: ${body.trim().slice(0, 500)}`, { exitCode: 1 })
  }
  io.stdout.write(`ok: ${where}\n`)
  return 0
}

/** Throws a `SetupError` that says why the sidecar does not respond. If the sidecar waits for this address, the exit code is 2. */
async function refuse({ admin, stateDir }: Asked, where: string, error: unknown): Promise<never> {
  const status =
    stateDir === undefined
      ? undefined
      : await control<Status>(stateDir, { method: 'GET', path: '/status' }, TIMEOUT).catch(() => undefined)
  const late = status?.waiting?.find(({ key }) => key === 'admin.address')
  if (late === undefined) throw new SetupError(`${where}: ${describe(error, admin)}`, { exitCode: 1 })
  throw new SetupError(
    `${where}: the sidecar runs, and waits for ${late.address}, which this machine does not have yet`,
  )
}

/** Asks over TLS. Rejects before the request is sent if the server has another certificate than the configured one. */
async function askOverTls(
  target: RequestOptions,
  path: string,
  configured: ReturnType<typeof certificateOf>,
) {
  const [{ connectToKnown }, { readCertificate }] = await Promise.all([
    import('./known-connection.ts'),
    import('../listen/tls-material.ts'),
  ])
  const known = configured && (await readCertificate(configured.tls, configured.stateDir))
  // The time covers the handshake and the response.
  using deadline = abortAfter(systemClock, TIMEOUT)
  const { signal } = deadline
  try {
    const socket = await connectToKnown(target, known, signal)
    const asked = ask({ ...target, path, agent: undefined, createConnection: () => socket }, TIMEOUT)
    return await asked.finally(() => socket.destroy())
  } catch (error) {
    throw signal.aborted ? noResponse(TIMEOUT) : error
  }
}

/** Where the certificate of the sidecar is; undefined with `--admin`, which reads no configuration. */
function certificateOf({ listen, stateDir = '' }: Asked) {
  if (listen === undefined) return undefined
  const { tls } = listen
  if (tls !== undefined) return { tls, stateDir }
  throw new SetupError(
    'listen.tls: says which certificate the sidecar has, and is not usable; name it with --admin',
  )
}

function targetOf(address: ListenAddress | 'off'): RequestOptions {
  if (address === 'off') {
    throw new SetupError(
      'admin.address: is off, so the sidecar cannot be asked; give it an address such as 127.0.0.1:9464',
    )
  }
  if (address.kind === 'fd') {
    throw new SetupError(
      'admin.address: is a socket of the service manager, whose address is not known here; ask it with curl',
    )
  }
  if (address.kind === 'tcp' && address.port === 0) {
    throw new SetupError(
      'admin.address: has port 0, a different port at each start; give it one, such as 9464',
    )
  }
  return reachedAt(address)
}

function describe(error: unknown, { allow }: Asked['admin']): string {
  if (codeOf(error) === 'ECONNRESET' && allow.length > 0)
    return 'the connection was closed without an answer; admin.allow must admit the address of this machine'
  if (codeOf(error) === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return 'what answers there does not speak TLS; if admin.tls has just changed, restart the sidecar'
  return ['ECONNREFUSED', 'ENOENT'].includes(codeOf(error)) ? 'no sidecar is running there' : reasonOf(error)
}
