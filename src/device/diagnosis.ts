import type { PeerCertificate, TLSSocket } from 'node:tls'
import type { UpstreamFailure } from '../http/refusal.ts'
import type { Clock, Timer } from '../system/clock.ts'
import { codeOf } from '../system/setup-error.ts'
import type { Breaker } from './breaker.ts'
import { createSocketOpener } from './open-socket.ts'
import { deviceTls, type TlsSettings, type UpstreamTarget } from './target.ts'
import { type Diagnosis, explainCertificate, faultOf, type Handshake, linesFor } from './tls-faults.ts'

type TlsAttempt = Handshake | { readonly error: unknown }

/**
 * Whether TLS can be the cause of this failure. A TLS server answers cleartext mostly by closing, and a small one whose buffer the first
 * message of TLS overflows often by silence.
 */
export function canDiagnose(failure: UpstreamFailure, { origin, socketPath }: UpstreamTarget): boolean {
  if (socketPath !== undefined) return false
  if (failure === 'connection_terminated') return true
  return origin.startsWith('https:') && (failure.startsWith('tls_') || failure === 'connection_timeout')
}

/** The errors of a device that closes the connection instead of an alert. */
const BREAKS: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE'])

/** The groups for a device that has none of the usual ones. P-256 is among them because TLS 1.3 does not know all of the others. */
const OTHER_GROUPS = [
  ...['P-256', 'P-521', 'brainpoolP256r1', 'brainpoolP384r1', 'brainpoolP512r1'],
  ...['brainpoolP256r1tls13', 'brainpoolP384r1tls13', 'brainpoolP512r1tls13'],
]

/**
 * The settings that an old or small device may need, the secure ones first; the first that works counts. A device that was silent is not
 * offered other groups, because it may have no room for a longer message.
 */
function looserThan(settings: TlsSettings, wasSilent: boolean): readonly TlsSettings[] {
  const usual: TlsSettings = { maxVersion: undefined, groups: undefined }
  const short: TlsSettings = { ...usual, maxVersion: 'TLSv1.2' }
  const more = { groups: OTHER_GROUPS }
  return [
    ...(narrowingKeys(settings).length > 0 ? [usual] : []),
    // Groups before TLS 1.2, whose key exchange may have no forward secrecy.
    ...(wasSilent ? [short] : [{ ...usual, ...more }, short, { ...short, ...more }]),
    { ...usual, weak: true },
  ]
}

/**
 * Opens TLS connections to the device, sends no request over them, and explains what keeps the sidecar from the device: a certificate that
 * the sidecar refuses, TLS of another decade, or the wrong scheme in the URL. Undefined if none of these is the cause. Makes at most seven
 * handshakes, the secure ones first.
 *
 * @param key the configuration key of the service, such as `upstream`
 * @param patience how long each handshake may take (ms)
 * @param signal ends the attempts, which then explain nothing
 */
export async function diagnose(
  target: UpstreamTarget,
  key: string,
  patience: number,
  clock: Pick<Clock, 'after'>,
  signal?: AbortSignal,
): Promise<Diagnosis | undefined> {
  const { protocol, host, hostname, port } = new URL(target.origin)
  const at = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}`
  if (protocol === 'http:') {
    const found = await tryTls(clock, { ...target, origin: `https://${at}` }, {}, patience, signal)
    // An alert proves TLS, too.
    return 'error' in found && !/ALERT/.test(codeOf(found.error))
      ? undefined
      : {
          reason: `the device speaks TLS at ${host}, and ${key}.url says http`,
          remedy: `set ${key}.url to https://${at}`,
        }
  }
  const settings: TlsSettings = target.tls ?? {}
  const first = await tryTls(clock, target, settings, patience, signal)
  if (!('error' in first)) return explainCertificate(first, target, settings, key)
  const fault = faultOf(first.error)
  const look = `look at the TLS settings of the device; openssl s_client -connect ${at} shows what it offers`
  const failed = fault && {
    reason: `${fault.cause} (${codeOf(first.error)})`,
    remedy: fault.remedy?.(key, at) ?? look,
  }
  const isMendable = fault === undefined ? BREAKS.has(codeOf(first.error)) : fault.remedy === undefined
  if (!isMendable) return failed
  const isVague = fault === undefined || first.error === SILENCE
  for (const each of looserThan(settings, first.error === SILENCE)) {
    const found = await tryTls(clock, target, { ...settings, ...each }, patience, signal)
    if ('error' in found) continue
    // The same settings once more: a device that was only busy or starting needs no other settings.
    const again = isVague ? await tryTls(clock, target, settings, patience, signal) : first
    if (!('error' in again)) return explainCertificate(again, target, settings, key)
    const needed = { ...settings, ...each, ...(each.groups === undefined ? {} : { groups: found.groups }) }
    const refused = explainCertificate(found, target, needed, key)
    const { tls = linesFor(needed), remedy = remedyFor(tls, settings, key) } = refused ?? {}
    const cause = fault?.cause ?? 'the device breaks off the TLS handshake'
    return { reason: refused === undefined ? cause : `${cause}; ${refused.reason}`, remedy, tls }
  }
  return failed
}

/** The configured keys that offer the device less than the default does. */
function narrowingKeys({ maxVersion, groups }: TlsSettings): readonly string[] {
  return [...(maxVersion === undefined ? [] : ['max_version']), ...(groups === undefined ? [] : ['groups'])]
}

/** @param tls the value that works. `{}`: the defaults work, so the narrowing keys are removed */
function remedyFor(tls: string, settings: TlsSettings, key: string): string {
  return tls === '{}'
    ? `remove ${narrowingKeys(settings).join(' and ')} from ${key}.tls`
    : `write under ${key}: tls: ${tls}`
}

/** How long a device of TLS 1.3 may take to judge the client certificate (ms). */
const JUDGED_WITHIN = 500

/** The device accepts the connection and does not answer the first message of TLS. */
const SILENCE = Object.assign(new Error('no answer to the first message of TLS'), {
  code: 'ERR_TLS_HANDSHAKE_TIMEOUT',
})

/** Makes one handshake, then destroys the socket. Accepts every certificate, which is safe because no request is sent. */
function tryTls(
  clock: Pick<Clock, 'after'>,
  target: UpstreamTarget,
  settings: TlsSettings,
  patience: number,
  signal: AbortSignal | undefined,
): Promise<TlsAttempt> {
  return new Promise((resolve) => {
    const settle = (attempt: TlsAttempt): void => {
      signal?.removeEventListener('abort', abort)
      timer?.cancel()
      late.cancel()
      resolve(attempt)
      socket.destroy()
    }
    const abort = (): void => settle({ error: new Error('no answer') })
    let isConnected = false
    const late = clock.after(patience, () => (isConnected ? settle({ error: SILENCE }) : abort()))
    let timer: Timer | undefined
    const tls = deviceTls({ ...settings, insecure: true, pin: undefined })
    const socket = createSocketOpener({ ...target, tls })(() => {
      // The cast holds because the origin is https.
      const secure = socket as TLSSocket
      const certificate = secure.getPeerCertificate()
      // `authorizationError` is a code, although its type is `Error`.
      const refusal = secure.authorized ? undefined : String(secure.authorizationError)
      const groups = groupsOf(secure, certificate)
      const done = (): void => settle({ certificate, refusal, groups })
      if (secure.getProtocol() !== 'TLSv1.3') return done()
      // In TLS 1.3 the device judges the client certificate after this side has finished the handshake. A session ticket shows that it
      // accepts it.
      secure.once('session', done).once('end', done).resume()
      timer = clock.after(JUDGED_WITHIN, done)
    })
    socket.once('connect', () => {
      isConnected = true
    })
    // Once both sides have keys, only the client certificate can still fail. The line with the keys is dropped.
    let hasKeys = false
    socket.once('keylog', () => {
      hasKeys = true
    })
    socket.once('error', (error) => {
      const isAboutClient = hasKeys && /handshake.failure/i.test(error.message)
      settle({ error: isAboutClient ? Object.assign(error, { message: 'certificate required' }) : error })
    })
    socket.once('close', () => settle({ error: new Error('closed') }))
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort)
  })
}

/** The groups that this handshake needs, as `upstream.tls.groups` names them. */
function groupsOf(socket: TLSSocket, { asn1Curve }: PeerCertificate): readonly string[] {
  const key = socket.getEphemeralKeyInfo()
  const agreed = key !== null && 'name' in key ? key.name : undefined
  const used = [agreed, asn1Curve].filter((name) => name !== undefined)
  return [...new Set(['prime256v1', ...used])].map((name) => (name === 'prime256v1' ? 'P-256' : name))
}

/** The least time (ms) between two diagnoses: a device with a wrong certificate fails all day. */
const INTERVAL = 3_600_000

/** Failures in a row before the cause is looked for. From then on the breaker counts the device as down, too. */
const FAILURES_IN_A_ROW = 3

interface Dependencies {
  readonly key: string
  readonly clock: Clock
  readonly breaker: Pick<Breaker, 'successes'>
  /** How long a handshake may take (ms): the connect deadline of requests, which a slower one would miss. */
  readonly patience: number
  readonly onFound: (cause: Diagnosis) => void
  readonly onBug: (error: unknown) => void
}

/**
 * Watches the outcomes of requests and health checks. After three failures in a row, if TLS may explain the latest one, it runs `diagnose`
 * and reports the cause, at most once an hour: clients and metrics see only a code such as `tls_certificate_error`. A device that has
 * answered in cleartext is never probed with TLS: a TLS hello confuses old firmware.
 */
export function watchTrouble(
  target: UpstreamTarget,
  { key, clock, breaker, patience, onFound, onBug }: Dependencies,
) {
  const isCleartext = target.origin.startsWith('http:')
  const closing = new AbortController()
  let last = Number.NEGATIVE_INFINITY
  let speaksHttp = false
  let inARow = 0
  let responses = 0

  return {
    failed(failure: UpstreamFailure): void {
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
      diagnose(target, key, patience, clock, closing.signal)
        .then((found) => {
          if (found !== undefined && !closing.signal.aborted) onFound(found)
        })
        .catch(onBug)
    },
    /** Aborts the attempt in progress. Nothing is reported afterwards. */
    close: (): void => closing.abort(),
  }
}
