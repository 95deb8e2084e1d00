import type { Config } from '../../config/schema.ts'
import { formatSize } from '../../config/units.ts'
import { type ServiceConfig, servicesOf } from '../../config/upstream-fields.ts'
import { createConnections, type Malformed } from '../../device/connections.ts'
import { failureOf } from '../../device/failure.ts'
import { type OwnResponse, probeDevice, sendOwnRequest } from '../../device/own-request.ts'
import type { UpstreamTarget } from '../../device/target.ts'
import { withCredentials } from '../../forward/request-fields.ts'
import { createRouter } from '../../forward/routes.ts'
import { CHROMIUM, CURL, type Sample, sampleFields } from '../../forward/sample-heads.ts'
import { AUTO_BUFFER, readRequestFields, upstreamDeadlines, upstreamTarget } from '../../forward/settings.ts'
import { openSignIn } from '../../sign-in/settings.ts'
import { systemClock } from '../../system/clock.ts'
import { isBug, SetupError } from '../../system/setup-error.ts'
import { type Check, CheckFailure, type Finding } from './finding.ts'

/**
 * Opens a service with its login, as `serve` does. `told` then says what was wrong with the login, its end or a response. `close` ends the
 * session.
 */
export async function openService(service: ServiceConfig, key: string) {
  const told: { problem?: string; unended?: string; malformed?: Malformed } = {}
  const target = await upstreamTarget(service, key)
  const settings = await readRequestFields(service, key)
  const connections = createConnections(target, upstreamDeadlines(service), systemClock, {
    onQuirk(_quirk, malformed) {
      if (malformed !== undefined) told.malformed = malformed
    },
  })
  const signIn = await openSignIn(service.auth, {
    key: `${key}.auth`,
    connections,
    origin: target.origin,
    request: () => settings,
    clock: systemClock,
    events: {
      signedIn() {},
      refused() {
        told.problem = 'the device refuses these credentials'
      },
      unusable(reason) {
        told.problem = reason
      },
      changing() {},
      notSignedOut(reason) {
        told.unended = reason
      },
    },
  })
  const close = async (): Promise<void> => {
    await signIn?.signOut()
    await connections.close()
  }
  return { connections, settings, signIn, told, close }
}

/** Whether the device sets another session in its response to a signed-in GET. False without a response. */
export async function changesSession(
  { connections, settings, signIn }: Pick<Service, 'connections' | 'settings' | 'signIn'>,
  page: string,
): Promise<boolean> {
  const line = { method: 'GET', target: page }
  const sent = signIn?.credentialsFor(line)
  if (signIn === undefined || sent === undefined) return false
  try {
    const fields = withCredentials(sampleFields(CURL, settings), sent.fields)
    const response = await sendOwnRequest(connections, { ...line, fields }, true)
    if (!signIn.isChallenge(line, response)) signIn.accepted(line, response, sent)
    return sent.session.changed === true
  } catch (error) {
    if (isBug(error)) throw error
    return false
  }
}

type Service = Awaited<ReturnType<typeof openService>>

/** Other settings with which a request may be accepted, as the lines to write below the section of the service. */
interface Trial {
  readonly lines: string
  readonly change: Partial<ServiceConfig>
}

const OLD: Trial = { lines: 'version: "1.0"', change: { version: '1.0' } }

/** Statuses with which a device refuses a request as such; undefined: no answer. `401` and `404` are about the page. */
const REFUSED: ReadonlySet<number | undefined> = new Set([undefined, 400, 403, 413, 414, 421, 431, 505])

/** Statuses by which a device refuses another `Host` than its own. */
const REFUSED_HOST: ReadonlySet<number | undefined> = new Set([400, 403, 421])

/**
 * Requests a page as curl and as a browser do, through Postern. If the device refuses one, tries it with other settings. Undefined if
 * the device accepts both, or refuses them with all settings: then it means the request, not its head.
 */
export async function tryHeads(
  service: ServiceConfig,
  key: string,
  page: string,
): Promise<Exclude<Finding, string> | undefined> {
  // A header file that cannot be read is a finding of its own.
  if ((await readRequestFields(service, key).catch(() => true)) === true) return undefined
  const target = await upstreamTarget(service, key)
  const ask = async (sample: Sample, change: Partial<ServiceConfig> = {}): Promise<number | undefined> => {
    const changed = { ...service, ...change }
    const device: UpstreamTarget = { ...target, version: changed.version, reuse: 'never' }
    const fields = sampleFields(sample, await readRequestFields(changed, key))
    return probeDevice(device, upstreamDeadlines(service), page, systemClock, fields).then(
      ({ status }) => status,
      () => undefined,
    )
  }
  for (const sample of [CURL, CHROMIUM]) {
    const refused = await ask(sample)
    if (!REFUSED.has(refused)) continue
    const trials = REFUSED_HOST.has(refused)
      ? [otherHost(service), ...shorter(service), OLD]
      : [...shorter(service), OLD]
    for (const { lines, change } of trials) {
      const answered = await ask(sample, change)
      if (REFUSED.has(answered) || Number(answered) >= 500) continue
      const found = refused === undefined ? 'no answer' : `answered ${refused}`
      return {
        warning: `${found} to a request of ${sample.program} through Postern, and ${answered} with ${key}: {${lines}}`,
        meaning: 'the device refuses the requests of clients',
        remedy: `write ${key}: {${lines}}`,
      }
    }
    return undefined
  }
  return undefined
}

function shorter({ drop }: ServiceConfig): readonly Trial[] {
  const dropped = [...new Set([...drop, 'cookie', 'sec-*'])]
  return [
    { lines: 'forwarding: off', change: { forwarding: 'off' } },
    {
      lines: `forwarding: off, drop: [${dropped.map((name) => `"${name}"`).join(', ')}]`,
      change: { forwarding: 'off', drop: dropped },
    },
  ]
}

function otherHost({ host }: ServiceConfig): Trial {
  const other = host === 'preserve' ? 'target' : 'preserve'
  return { lines: `host: ${other}`, change: { host: other } }
}

/** Several, because some firmware reads only the first. */
const CHUNKS = Array.from('abcd', (letter) => `${letter.repeat(1023)}\n`)

/** The chunks, none of them empty, up to the longest body that the device may get (bytes). */
function chunksFor({ maxBody }: ServiceConfig): readonly string[] {
  const each = maxBody === 'off' ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(maxBody / CHUNKS.length))
  const chunks = CHUNKS.map((chunk) => chunk.slice(-each))
  return maxBody === 'off' ? chunks : chunks.slice(0, maxBody)
}

/** Which length passes. */
function bounded(finding: Finding, { maxBody }: ServiceConfig): Finding {
  const bound =
    maxBody === 'off'
      ? 'a body of any length passes (max_body: off)'
      : `a longer body than ${formatSize(maxBody)} is refused`
  if (typeof finding === 'string') return `${finding}; ${bound}`
  return { ...finding, warning: `${finding.warning}; ${bound}` }
}
const SAMPLE = { ...CURL, fields: [...CURL.fields, 'content-type', 'text/plain'] }

/** The service that gets this path, with its key. Throws `SetupError` if the path is not one of a single service. */
export function serviceAt({ upstream }: Config, path: string, argument: string) {
  const [main, ...routes] = servicesOf(upstream).map((each) => [each.path[2] ?? '', each] as const)
  const isPath = /^\/[!-~]*$/.test(path) && !path.includes('#')
  const named = isPath && main && createRouter(main[1], new Map(routes))(path)
  if (!named) throw new SetupError(`${argument} must be a path of one service of the device, such as /upload`)
  return { service: named.service, key: named.path.join('.') }
}

/** Compares the responses to 4 KiB, or to what `max_body` lets through, with their length and in chunks. Throws `SetupError` if `path` is not that of one service. */
export function uploadCheck(config: Config, path: string): Check {
  const { service, key } = serviceAt(config, path, '--uploads')
  return {
    name: `uploads to ${path}`,
    key: `${key}.url`,
    meaning: 'it is unknown whether the device reads an upload in chunks',
    remedy: 'name a path of the device that takes a POST',
    run: () => tryUploads(service, key, path),
  }
}

async function tryUploads(service: ServiceConfig, key: string, path: string): Promise<Finding> {
  if (service.version === '1.0') return 'nothing was sent, because HTTP/1.0 has no chunks'
  // What the device leaves unread of one body must not reach the next request.
  const { connections, settings, signIn, close } = await openService({ ...service, reuse: 'never' }, key)
  const line = { method: 'POST', target: path }
  const post = async (body: string | readonly string[], nonce?: string): Promise<OwnResponse> => {
    const sent = signIn?.credentialsFor(line, nonce)
    const fields = withCredentials(sampleFields(SAMPLE, settings), sent?.fields ?? [])
    const request = { ...line, fields, body, keepsBody: true }
    const response = await sendOwnRequest(connections, request, false)
    if (nonce !== undefined || signIn?.isChallenge(line, response) !== true) return response
    // The device may take each nonce once. It did not act on what it refused.
    const renewal = await signIn.renew(response, sent, false)
    return renewal.kind === 'new-nonce' ? post(body, renewal.nonce) : response
  }
  try {
    await signIn?.ready()
    if (signIn?.credentialsFor(line) === undefined && signIn !== undefined) {
      return { warning: 'nothing was sent, because Postern is not signed in', remedy: `correct ${key}.auth` }
    }
    const chunks = chunksFor(service)
    const whole = await post(chunks.join('')).catch((error: unknown) => {
      throw isBug(error) ? error : new CheckFailure(`no answer to a POST with a length (${failureOf(error)})`)
    })
    return bounded(judge(service, key, whole, await post(chunks).catch(() => undefined)), service)
  } finally {
    await close()
  }
}

/** Whether each upload of unknown length is collected. */
function sendsNoChunks({ bufferUploads, maxBody }: ServiceConfig): boolean {
  if (bufferUploads === 'auto') return maxBody !== 'off' && maxBody <= AUTO_BUFFER
  return bufferUploads !== 'off'
}

function judge(service: ServiceConfig, key: string, whole: OwnResponse, chunked?: OwnResponse): Finding {
  const status = chunked?.status ?? 'no answer'
  const found = `a POST with a length got ${whole.status}, one in chunks ${status}`
  const alike = status === whole.status
  // An error that a body with a length gets, too, is about the path.
  if (whole.status >= 400 && (alike || Number(status) < 400)) return { warning: found }
  if (alike && String(chunked?.body) === String(whole.body)) return `${found} with the same body`
  const warning = alike ? `${found} with another body` : found
  if (sendsNoChunks(service)) return `${warning}; Postern sends it none in chunks`
  const meaning = 'of an upload in chunks the device may take only a part, or nothing'
  const auto = service.bufferUploads === 'off' ? `write ${key}: {buffer_uploads: auto}; ` : ''
  const size = `write ${key}: {buffer_uploads: 16MiB}, or the size of the longest`
  return { warning, meaning, remedy: `${auto}for uploads above 1 MiB, ${size}` }
}
