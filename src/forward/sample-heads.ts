import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { Fields } from '../http/fields.ts'
import { surveyFields } from '../http/head-survey.ts'
import { writeRequestHead } from '../http1/request-writer.ts'
import { type RequestFieldSettings, requestFields } from './request-fields.ts'

/** The fields of a GET over HTTP/2, as a program sends them. */
export interface Sample {
  readonly program: string
  readonly fields: Fields
}

/** A name for Postern that no device knows, about as long as most names. */
const AUTHORITY = 'postern.example:8443'

export const CURL: Sample = { program: 'curl', fields: ['user-agent', 'curl/8.14.1', 'accept', '*/*'] }

export const CHROMIUM: Sample = {
  program: 'Chromium',
  fields: [
    ...['cache-control', 'max-age=0'],
    ...['sec-ch-ua', '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"'],
    ...['sec-ch-ua-mobile', '?0', 'sec-ch-ua-platform', '"Windows"', 'upgrade-insecure-requests', '1'],
    'user-agent',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    'accept',
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8',
    ...['sec-fetch-site', 'same-origin', 'sec-fetch-mode', 'navigate', 'sec-fetch-user', '?1'],
    ...['sec-fetch-dest', 'document', 'accept-encoding', 'gzip, deflate, br, zstd'],
    ...['accept-language', 'en-US,en;q=0.9', 'cookie', 'session=0123456789abcdef0123456789abcdef'],
    ...['priority', 'u=0, i'],
  ],
}

/** The fields that the device gets from such a GET with these settings. */
export function sampleFields({ fields }: Sample, settings: RequestFieldSettings): Fields {
  const peer = '192.0.2.100'
  const head = {
    version: '2',
    secure: true,
    fields,
    survey: surveyFields(fields),
    peer,
    localPort: 8443,
  } as const
  const client = { address: peer, peerTrusted: false, hops: 0 }
  const request = {
    head,
    classified: { host: AUTHORITY },
    client,
    requestId: '0'.repeat(32),
    scope: undefined,
    confined: false,
  }
  return requestFields(request, null, settings)
}

/** The size (bytes) of the head that the device gets from such a GET for `/`. */
export function sampleSize(
  sample: Sample,
  settings: RequestFieldSettings,
  { version, reuse }: Pick<ServiceConfig, 'version' | 'reuse'>,
): number {
  const fields = sampleFields(sample, settings)
  const head = writeRequestHead(
    { method: 'GET', target: '/', fields, framing: null },
    AUTHORITY,
    version === '1.1' && reuse === 'shared',
    version,
  )
  return head?.length ?? 0
}
