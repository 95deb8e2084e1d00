import { requestKeeps } from '../../config/header-field.ts'
import type { ServiceConfig } from '../../config/upstream-fields.ts'
import type { OwnResponse } from '../../device/own-request.ts'
import { CURL, type Sample } from '../../forward/sample-heads.ts'
import { fieldValues, isEncoded, lengthIn } from '../../http/fields.ts'
import { isBug } from '../../system/setup-error.ts'
import type { Warning } from './finding.ts'
import { leavingOut } from './leaving-out.ts'

/** A request of `curl --compressed`. */
export const COMPRESSED: Sample = { ...CURL, fields: [...CURL.fields, 'accept-encoding', 'gzip'] }

/** The shortest page that is judged (bytes): not every server compresses shorter pages, and it would save little. */
const SHORTEST = 1024

/** Types that servers compress. */
const TEXT = /^(?:text\/|image\/svg|application\/(?:[\w.-]+\+)?(?:json|xml|javascript))/i

function mayShrink({ status, fields }: OwnResponse): boolean {
  const [type = ''] = fieldValues(fields, 'content-type')
  const [length = ''] = fieldValues(fields, 'content-length')
  return status === 200 && !isEncoded(fields) && TEXT.test(type) && (lengthIn(length) ?? SHORTEST) >= SHORTEST
}

/** Sends `COMPRESSED` with the settings of a service. */
type Ask = (service: ServiceConfig) => Promise<OwnResponse>

/**
 * Warns if the device compresses its page only for a request without `Via`: by default nginx compresses nothing for a proxy (`gzip_proxied
 * off`). Undefined in all other cases, also if the device does not answer.
 *
 * @param found the sentence of the check about the page, for the warning
 * @param known the response to a request with the present settings, if there is one
 */
export async function tryCompression(
  service: ServiceConfig,
  key: string,
  found: string,
  ask: Ask,
  known?: OwnResponse,
): Promise<Warning | undefined> {
  if (requestKeeps(service.headers)?.('via') === false) return undefined
  const { line, beside, change } = leavingOut(['Via'], service)
  try {
    if (!mayShrink(known ?? (await ask(service)))) return undefined
    const other = await ask({ ...service, ...change })
    if (other.status !== 200 || !isEncoded(other.fields)) return undefined
  } catch (error) {
    if (isBug(error)) throw error
    return undefined
  }
  return {
    warning: `${found}; it compresses its page only for requests without Via`,
    meaning: 'clients get its pages uncompressed',
    remedy: `write ${key}: {${line}}${beside}`,
    line,
  }
}
