import type { Admission } from '../../src/http/admission.ts'
import type { ExchangeRecord } from '../../src/http/exchange.ts'
import { admitted } from './forward.ts'
import { requestHead } from './request-head.ts'

const ADMISSION = admitted(requestHead())

/** The record of a request that was forwarded, with these properties in place of its own. */
export function exchangeRecord({
  admission,
  ...others
}: Partial<Omit<ExchangeRecord, 'admission'>> & {
  readonly admission?: Partial<Omit<Admission, 'kind'>> & { readonly wouldRefuse?: ExchangeRecord['refusal'] }
} = {}): ExchangeRecord {
  return {
    head: requestHead(),
    admission: { ...ADMISSION, ...admission },
    grant: undefined,
    refusal: undefined,
    outcome: { status: 200, end: 'complete', requestBytes: 0, responseBytes: 0 },
    duration: 4,
    start: 0,
    lookup: 0,
    ...others,
  }
}
