import { formatSize } from '../../config/units.ts'
import type { ServiceConfig } from '../../config/upstream-fields.ts'
import { failureOf } from '../../device/failure.ts'
import { type OwnResponse, sendOwnRequest } from '../../device/own-request.ts'
import { withCredentials } from '../../forward/request-fields.ts'
import { CURL, sampleFields } from '../../forward/sample-heads.ts'
import { AUTO_BUFFER } from '../../forward/service-settings.ts'
import { isBug, SetupError } from '../../system/setup-error.ts'
import { openService } from './open-service.ts'
import { check } from './part.ts'
import { lookBound, type Service, serviceAt } from './services.ts'

/** Compares the responses to two POSTs of 4 KiB, or of at most `max_body`: one with its length, one in chunks. */
export const UPLOADS = check({
  withReload: true,
  subjects: (asked) =>
    asked.uploads === undefined
      ? []
      : [{ path: asked.uploads, ...serviceAt(asked, asked.uploads, '--uploads') }],
  about: ({ key, path }) => ({
    name: `uploads to ${path}`,
    key: `${key}.url`,
    meaning: 'it is unknown whether the device reads an upload in chunks',
    remedy: 'name a path of the device that takes a POST',
  }),
  untried: ({ service }) =>
    service.version === '1.0' ? 'nothing was sent, because HTTP/1.0 has no chunks' : undefined,
  bound: lookBound,
  look: postTwice,
  rows: {
    'not signed in': ({ whole, key }) =>
      whole === undefined && {
        warning: 'nothing was sent, because Postern is not signed in',
        remedy: `correct ${key}.auth`,
      },
    // An error that also the body with a length gets is about the path.
    'error of the path': ({ whole = 0, chunked = 0, found, bound }) =>
      whole >= 400 &&
      (chunked === whole || (chunked > 0 && chunked < 400)) && { warning: `${found}; ${bound}` },
    'the same': ({ isSame, found, bound }) => isSame && `${found} with the same body; ${bound}`,
    'no chunks': ({ different, service, bound }) =>
      sendsNoChunks(service) && `${different}; Postern sends it none in chunks; ${bound}`,
    'chunks are lost': ({ different, service, key, bound }) => {
      const auto = service.bufferUploads === 'off' ? `write ${key}: {buffer_uploads: auto}; ` : ''
      const size = `write ${key}: {buffer_uploads: 16MiB}, or the size of the longest`
      return {
        warning: `${different}; ${bound}`,
        meaning: 'of an upload in chunks the device may take only a part, or nothing',
        remedy: `${auto}for uploads above 1 MiB, ${size}`,
      }
    },
  },
})

/** A clause about the longest body that passes. */
function boundOf({ maxBody }: ServiceConfig): string {
  return maxBody === 'off'
    ? 'a body of any length passes (max_body: off)'
    : `a longer body than ${formatSize(maxBody)} is refused`
}

/** Whether Postern buffers every upload of unknown length, so the device never gets chunks. */
function sendsNoChunks({ bufferUploads, maxBody }: ServiceConfig): boolean {
  if (bufferUploads === 'auto') return maxBody !== 'off' && maxBody <= AUTO_BUFFER
  return bufferUploads !== 'off'
}

/** The body. It has several chunks, because some firmware reads only the first. */
const CHUNKS = Array.from('abcd', (letter) => `${letter.repeat(1023)}\n`)

/** The chunks, none of them empty, up to the longest body that the device may get (bytes). */
function chunksFor({ maxBody }: ServiceConfig): readonly string[] {
  const each = maxBody === 'off' ? Number.POSITIVE_INFINITY : Math.max(1, Math.floor(maxBody / CHUNKS.length))
  const chunks = CHUNKS.map((chunk) => chunk.slice(-each))
  return maxBody === 'off' ? chunks : chunks.slice(0, maxBody)
}

const SAMPLE = { ...CURL, fields: [...CURL.fields, 'content-type', 'text/plain'] }

interface Subject extends Service {
  readonly path: string
}

/** `whole`, `chunked`: the statuses; undefined if there was no answer or nothing was sent. */
async function postTwice({ service, key, clock, path }: Subject, signal: AbortSignal) {
  // Bytes of one body that the device leaves unread must not reach the next request.
  await using opened = await openService({ service: { ...service, reuse: 'never' }, key, clock }, signal)
  const { connections, settings, signIn } = opened
  const line = { method: 'POST', target: path }
  const post = async (body: string | readonly string[], nonce?: string): Promise<OwnResponse> => {
    const sent = signIn?.credentialsFor(line, nonce)
    const fields = withCredentials(sampleFields(SAMPLE, settings), sent?.fields ?? [])
    const request = { ...line, fields, body, keepsBody: true }
    const response = await sendOwnRequest(connections, request, false)
    if (nonce !== undefined || signIn?.isChallenge(line, response) !== true) return response
    // The device may accept each nonce only once. It did not act on the refused request.
    const renewal = await signIn.renew(response, sent, false)
    return renewal.kind === 'new-nonce' ? post(body, renewal.nonce) : response
  }
  await signIn?.ready()
  const isSignedIn = signIn === undefined || signIn.credentialsFor(line) !== undefined
  const chunks = chunksFor(service)
  const whole = isSignedIn ? await post(chunks.join('')).catch(unanswered) : undefined
  const chunked = isSignedIn ? await post(chunks).catch(() => undefined) : undefined
  const found = `a POST with a length got ${whole?.status}, one in chunks ${chunked?.status ?? 'no answer'}`
  const isAlike = chunked?.status === whole?.status
  return {
    service,
    key,
    whole: whole?.status,
    chunked: chunked?.status,
    found,
    isSame: isAlike && String(chunked?.body) === String(whole?.body),
    different: isAlike ? `${found} with another body` : found,
    bound: boundOf(service),
  }
}

function unanswered(error: unknown): never {
  if (isBug(error)) throw error
  const failure = failureOf(error)
  throw new SetupError(`no answer to a POST with a length (${failure})`, { exitCode: 1, cause: error })
}
