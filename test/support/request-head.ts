import type { RequestHead } from '../../src/http/exchange.ts'
import { requestFraming, surveyFields } from '../../src/http/head-survey.ts'

/** What of a head is given; `survey` and `framing` follow from it. */
export type HeadPart = Partial<Omit<RequestHead, 'survey' | 'framing'>> & {
  /** HTTP/2 ended the stream with the head. */
  readonly endsWithHead?: boolean
}

/** The head of a plain GET over cleartext HTTP/1.1, but for what is given. */
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
  }
}
