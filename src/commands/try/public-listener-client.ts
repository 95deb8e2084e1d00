import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { StatusAnswer } from '../../admin/control-socket.ts'
import { parseAddress } from '../../config/address.ts'
import type { Config } from '../../config/schema.ts'
import { isSelfSigned, type KnownCertificate, readCertificate } from '../../listen/tls-material.ts'
import { abortAfter, type Clock } from '../../system/clock.ts'
import { formatAddress, formatHostPort, type ListenAddress } from '../../system/listen-address.ts'
import { codeOf, isBug, reasonOf, SetupError } from '../../system/setup-error.ts'
import { control } from '../control.ts'
import { reachedAt } from '../find-sidecar.ts'
import { connectToKnown } from '../known-connection.ts'
import { type ListenerOrigin, originOf } from './listener-origin.ts'

export interface ClientRequest {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body. */
  readonly form?: Readonly<Record<string, string>>
}

/** A client of the public listener of the sidecar that runs with a configuration. */
export interface PublicListenerClient extends ListenerOrigin {
  /** Connects and sends nothing. Rejects as `send` does. */
  readonly tryToConnect: () => Promise<void>
  /**
   * Resolves when the head of the response has arrived. Rejects with a `SetupError` that says why there is none, with exit code 1.
   *
   * @param stop ends the request, and a response that has begun
   */
  readonly send: (request: ClientRequest, stop?: AbortSignal) => Promise<IncomingMessage>
  /** Resolves when the whole response has arrived. Rejects as `send` does. */
  readonly ask: (request: ClientRequest, stop?: AbortSignal) => Promise<Answer>
}

export interface Answer {
  readonly response: IncomingMessage
  /** The body, if it is JSON of up to `LARGEST_ANSWER` bytes. */
  readonly json: unknown
}

const LARGEST_ANSWER = 16 * 1024

/** The longest time to the head of a response, or to all of an `Answer` (ms): longer than the queue and the device take by default. */
const PATIENCE = 60_000

/**
 * Reads where the listener is, and which certificate it has. Rejects with a `SetupError` if that is not known.
 *
 * @param serve the command that starts the sidecar, for errors
 */
export async function openPublicListenerClient(
  config: Config,
  clock: Pick<Clock, 'after'>,
  serve: string,
): Promise<PublicListenerClient> {
  const { listen } = config
  const at = reachedAt(await boundAddress(config))
  const known = listen.tls === 'off' ? undefined : await readKnown(config, serve)
  const named = originOf(at, known)
  const where = 'socketPath' in at ? at.socketPath : formatHostPort(at)

  async function dial(signal: AbortSignal): Promise<Socket> {
    if (known !== undefined) return connectToKnown(at, known, signal)
    const socket = connect('socketPath' in at ? { path: at.socketPath } : at)
    signal.addEventListener('abort', () => socket.destroy())
    await once(socket, 'connect', { signal })
    return socket
  }

  async function overConnection<T>(work: (socket: Socket) => Promise<T>, stop?: AbortSignal): Promise<T> {
    using deadline = abortAfter(clock, PATIENCE)
    const { signal } = deadline
    try {
      return await work(await dial(stop === undefined ? signal : AbortSignal.any([signal, stop])))
    } catch (error) {
      if (isBug(error)) throw error
      const reason = signal.aborted ? `no response within ${PATIENCE / 1000} s` : reasonFor(error)
      throw new SetupError(`${where}: ${reason}`, { exitCode: 1, cause: error })
    }
  }

  function reasonFor(error: unknown): string {
    const code = codeOf(error)
    if (error instanceof SetupError)
      return `${error.message}; another program or sidecar listens there, or the file is not that of this sidecar`
    if (code === 'ECONNREFUSED' || code === 'ENOENT')
      return `nothing listens there; start the sidecar with ${serve}`
    if (code === 'ECONNRESET') {
      const closed = 'the connection was closed without an answer'
      return listen.allow.length === 0
        ? closed
        : `${closed}; listen.allow must admit the address of this machine`
    }
    if (/^(?:ERR_SSL_|EPROTO|HPE_)/.test(code)) {
      const protocol = code.startsWith('HPE_') ? 'HTTP' : 'TLS'
      return `what answers there does not speak ${protocol} (${code}); if listen.tls has just changed, restart the sidecar`
    }
    return reasonOf(error)
  }

  async function exchange(
    socket: Socket,
    { method, target, headers = {}, form }: ClientRequest,
  ): Promise<IncomingMessage> {
    const body = form === undefined ? undefined : String(new URLSearchParams(form))
    const content = body !== undefined && {
      'Content-Type': 'application/x-www-form-urlencoded',
      'Content-Length': Buffer.byteLength(body),
    }
    const sent = request({
      createConnection: () => socket,
      method,
      path: target,
      headers: { Host: new URL(named.origin).host, Accept: '*/*', ...headers, ...content },
    })
    // After the head, the response reports a broken connection.
    sent.on('error', () => {})
    const switched = once(sent, 'upgrade').then(() => {
      socket.destroy()
      throw new SetupError('the answer switches to another protocol')
    })
    sent.end(body)
    // Proof of the cast: the event has one argument, the response.
    const [response] = (await Promise.race([once(sent, 'response'), switched])) as [IncomingMessage]
    return response
  }

  return {
    ...named,
    tryToConnect: () => overConnection(async (socket) => void socket.destroy()),
    send: (request, stop) => overConnection((socket) => exchange(socket, request), stop),
    ask: (request, stop) =>
      overConnection(async (socket) => {
        const response = await exchange(socket, request)
        return { response, json: await jsonOf(response) }
      }, stop),
  }
}

async function jsonOf(response: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > LARGEST_ANSWER) return undefined
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch {
    return undefined
  }
}

type KnownAddress = Exclude<ListenAddress, { readonly kind: 'fd' }>

/** The address on which the listener is. If the configuration does not say it, the running sidecar does. */
async function boundAddress({ listen: { address }, admin, stateDir }: Config): Promise<KnownAddress> {
  if (address.kind === 'unix' || (address.kind === 'tcp' && address.port !== 0)) return address
  const status = { method: 'GET', path: '/status' }
  const { listening } = await control<Pick<StatusAnswer, 'listening'>>(stateDir, status)
  const ofAdmin = admin.address === 'off' ? 'off' : formatAddress(admin.address)
  // The address of the public listener is the last one.
  const bound = parseAddress(listening.filter((each) => each !== ofAdmin).at(-1) ?? '')
  if ('value' in bound && bound.value.kind !== 'fd') return bound.value
  throw new SetupError(`${formatAddress(address)} does not say where the sidecar listens`, {
    key: 'listen.address',
    remedy: 'say it with --set, such as --set listen.address=127.0.0.1:443',
  })
}

/** Reads the certificate that the listener has. */
async function readKnown({ listen: { tls }, stateDir }: Config, serve: string): Promise<KnownCertificate> {
  try {
    return await readCertificate(tls, stateDir)
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    const code = codeOf(error.cause)
    if (code === 'ENOENT' && isSelfSigned(tls)) {
      const none = `no certificate is in ${stateDir}, so no sidecar has started there`
      throw new SetupError(none, { exitCode: 1, remedy: `start it with ${serve}`, cause: error })
    }
    if (code !== 'EACCES') throw error
    throw new SetupError(error.reason, {
      remedy: 'run this command as root or the user of the sidecar',
      cause: error,
    })
  }
}
