import type { ServiceConfig } from '../../config/upstream-fields.ts'
import { failureOf } from '../../device/failure.ts'
import { LONGEST_PAGE, type OwnResponse, sendOwnRequest } from '../../device/own-request.ts'
import { withCredentials } from '../../forward/request-fields.ts'
import { sampleFields } from '../../forward/sample-heads.ts'
import { readRequestFields } from '../../forward/service-settings.ts'
import { isBug, SetupError } from '../../system/setup-error.ts'
import { COMPRESSED, tryCompression } from './compression.ts'
import { openService } from './open-service.ts'
import { check } from './part.ts'
import { failureHint, lookBound, malformedWarning, type Service, serviceAt, withoutText } from './services.ts'

/** Pages that the operator names, requested as a client would, signed in at the device. */
export const PAGES = check({
  withReload: true,
  subjects: (asked) => asked.pages.map((page) => ({ page, ...serviceAt(asked, page, 'PATH') })),
  about: ({ key, page }) => ({
    name: `page ${page}`,
    key: `${key}.url`,
    meaning: 'clients get an error for this page',
    remedy: 'name a page that clients use, or look at the log of the device',
  }),
  bound: lookBound,
  look: askPage,
  rows: {
    malformed: ({ malformed, key, found }) =>
      malformed !== undefined && malformedWarning(found, malformed, key),
    error: ({ status, found }) => status >= 400 && { warning: found },
    'no compression': ({ uncompressed }) => uncompressed,
    answers: ({ found }) => found,
  },
})

async function askPage(subject: Service & { readonly page: string }, signal: AbortSignal) {
  const { service, key, page } = subject
  await using opened = await openService(subject, signal)
  const { connections, signIn, told } = opened
  const line = { method: 'GET', target: page }
  await signIn?.ready()
  const own = signIn?.credentialsFor(line)?.fields ?? []
  const ask = async (by: ServiceConfig): Promise<OwnResponse> => {
    const fields = sampleFields(COMPRESSED, await readRequestFields(by, key))
    return sendOwnRequest(connections, { ...line, fields: withCredentials(fields, own) }, true)
  }
  const response = await ask(service).catch((error: unknown) => {
    if (isBug(error)) throw error
    const failure = failureOf(error)
    throw new SetupError(`no usable answer (${failure})`, {
      remedy: failureHint(failure, key),
      exitCode: 1,
      cause: error,
    })
  })
  const { status, fields, goesOn = false } = response
  const more = goesOn ? `; its body goes on after ${LONGEST_PAGE / 1000} s` : ''
  const found = `answered ${status}${withoutText(fields, service)}${more}`
  const { malformed } = told
  const uncompressed =
    malformed === undefined && !goesOn ? await tryCompression(service, key, found, ask, response) : undefined
  return { key, status, malformed, uncompressed, found }
}
