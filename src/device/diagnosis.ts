import type { PeerCertificate, TLSSocket } from 'node:tls'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Clock } from '../system/clock.ts'
import type { Breaker } from './breaker.ts'
import { createSocketOpener } from './open-socket.ts'
import type { UpstreamTarget } from './target.ts'
import { type Diagnosis, explainCertificate, explainHandshake, hostAndPort } from './tls-faults.ts'

type TlsAttempt =
  /** `refusal`: why the certificate is not accepted. */
  | { readonly kind: 'tls'; readonly refusal: string | undefined; readonly certificate: PeerCertificate }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Whether TLS can be the cause of this failure. A TLS server answers cleartext mostly by closing. */
export function canDiagnose(failure: UpstreamFailure, { origin, socketPath }: UpstreamTarget): boolean {
  if (socketPath !== undefined) return false
  return failure === 'connection_terminated' || (origin.startsWith('https:') && failure.startsWith('tls_'))
}

/**
 * Opens a TLS connection to the device, sends no request over it, and explains what keeps the sidecar from talking to the device: a
 * certificate that it does not accept, or the wrong scheme in the URL. Undefined if neither is the cause.
 *
 * @param key the configuration key of the service, such as `upstream`
 * @param signal ends the attempt, which then explains nothing
 */
export async function diagnose(
  target: UpstreamTarget,
  key: string,
  signal: AbortSignal,
): Promise<Diagnosis | undefined> {
  const { protocol, host } = new URL(target.origin)
  if (protocol === 'http:') {
    const found = await tryTls({ ...target, origin: `https://${hostAndPort(target.origin)}` }, signal)
    return found.kind === 'failed'
      ? undefined
      : {
          reason: `the device speaks TLS at ${host}, and ${key}.url says http`,
          remedy: `set ${key}.url to https://${hostAndPort(target.origin)}`,
        }
  }
  const found = await tryTls(target, signal)
  if (found.kind === 'failed') return explainHandshake(found.error, target.origin, key)
  return found.refusal === undefined || target.insecure
    ? undefined
    : explainCertificate(found.refusal, found.certificate, target, key)
}

/** Reads the certificate even if it is refused, which is safe because nothing is sent. */
function tryTls(target: UpstreamTarget, signal: AbortSignal): Promise<TlsAttempt> {
  return new Promise((resolve) => {
    const settle = (attempt: TlsAttempt): void => {
      signal.removeEventListener('abort', abort)
      resolve(attempt)
      socket.destroy()
    }
    const abort = (): void => settle({ kind: 'failed', error: new Error('no answer') })
    const socket = createSocketOpener({ ...target, insecure: true }).open(() => {
      // The cast holds because the origin is https.
      const secure = socket as TLSSocket
      // A code in fact, though its type is `Error`.
      const refusal = secure.authorized ? undefined : String(secure.authorizationError)
      settle({ kind: 'tls', refusal, certificate: secure.getPeerCertificate() })
    })
    socket.once('error', (error) => settle({ kind: 'failed', error }))
    socket.once('close', () => settle({ kind: 'failed', error: new Error('closed') }))
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort)
  })
}

/** How often the cause of a failure is looked for, and reported (ms): a device with a wrong certificate fails all day. */
const INTERVAL = 3_600_000

/** Failures in a row before the cause is looked for: from then on the breaker takes the device for down, too. */
const FAILURES_IN_A_ROW = 3

/** How long the device may take to answer (ms). */
const LIMIT = 5_000

export interface DeviceTroubleDependencies {
  /** The configuration key of the service. */
  readonly key: string
  readonly clock: Clock
  readonly breaker: Pick<Breaker, 'successes'>
  /** A cause was found. */
  readonly onFound: (cause: Diagnosis) => void
  readonly onBug: (error: unknown) => void
}

/** Observes the failures of requests. */
export interface TroubleWatch {
  failed(failure: UpstreamFailure): void
  /** Aborts the attempt that is under way; nothing is reported later. */
  close(): void
}

/**
 * Watches the outcomes of requests. After three failures in a row that TLS may explain, it opens one TLS connection and reports
 * the cause, at most once an hour: clients and metrics see only a code such as `tls_certificate_error`. It does not try a device that
 * has answered in cleartext: a TLS hello confuses old firmware.
 */
export function watchTrouble(
  target: UpstreamTarget,
  { key, clock, breaker, onFound, onBug }: DeviceTroubleDependencies,
): TroubleWatch {
  const isCleartext = target.origin.startsWith('http:')
  const closing = new AbortController()
  let last = Number.NEGATIVE_INFINITY
  let speaksHttp = false
  let inARow = 0
  let responses = 0

  async function explain(): Promise<void> {
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(LIMIT)])
    const found = await diagnose(target, key, signal)
    if (found !== undefined && !closing.signal.aborted) onFound(found)
  }

  return {
    failed(failure) {
      if (breaker.successes > responses) {
        responses = breaker.successes
        speaksHttp = isCleartext
        inARow = 0
      }
      inARow += 1
      const now = clock.monotonic()
      const isDue = inARow >= FAILURES_IN_A_ROW && now - last >= INTERVAL
      if (!isDue || speaksHttp || closing.signal.aborted || !canDiagnose(failure, target)) return
      last = now
      explain().catch(onBug)
    },
    close: () => closing.abort(),
  }
}
