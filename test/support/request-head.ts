import type { Derived } from '../../src/http/derived.ts'
import type { RequestHead } from '../../src/http/exchange.ts'
import { requestFraming, surveyFields } from '../../src/http/head-survey.ts'

/** The properties of a head that a test sets; `survey` and `framing` follow from them. */
export type HeadPart = Partial<Omit<RequestHead, 'survey' | 'framing' | keyof Derived>> & {
  /** HTTP/2: the HEADERS frame ends the stream. */
  readonly endsWithHead?: boolean
}

/** The head of a plain GET over cleartext HTTP/1.1, with these properties replaced. */
export function requestHead({ endsWithHead = false, ...over }: HeadPart = {}): RequestHead {
  const { version = '1.1', fields = ['Host', 'device.example'] } = over
  const survey = surveyFields(fields)
  return {
    version,
    secure: false,
    method: 'GET',
    target: '/',
    authority: undefined,
    peer: '192.0.2.1',
    localPort: 8443,
    upgrade: false,
    ...over,
    fields,
    framing: requestFraming(version, survey, endsWithHead),
    survey,
    classified: undefined,
    presented: undefined,
    outgoing: undefined,
    shown: undefined,
    changes: undefined,
    logged: undefined,
  }
}
