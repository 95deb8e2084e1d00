import type { UpstreamFailure } from '../../http/refusal.ts'

interface Hint {
  readonly meaning: string
  readonly remedy: string
}

/** Of a device that redirects to https. `key` is the configuration key of the service. */
export function redirectHint(key: string): Hint {
  return {
    meaning: 'the redirect leads clients past Postern, or back to it in a loop',
    remedy: `set ${key}.url to the https address of the device`,
  }
}

/** Of a device that answers the request for `page` with 500 or more. */
export function errorHint(page: string, key: string): Hint {
  return {
    meaning: `the device answers, but with an error: with ${key}.health.path: ${page} it counts as down`,
    remedy: `open ${page} on the device itself, or set ${key}.health.path to a page that works`,
  }
}

/** What the operator can do about a failure of the device. */
export function failureHint(failure: UpstreamFailure, key: string): string {
  switch (failure) {
    case 'dns_error':
      return `the host name in ${key}.url has no address: correct it, or write the IP address`
    case 'connection_refused':
      return `nothing listens there: switch the device on, or correct host and port in ${key}.url`
    case 'destination_unavailable':
      return `no route to the device: check the network of this machine, or correct ${key}.url`
    case 'connection_timeout':
      return `switch the device on, correct ${key}.url, or look for a firewall between the two`
    case 'http_response_timeout':
      return `raise ${key}.response_timeout, or set ${key}.health.path to a page that costs the device less`
    case 'http_response_header_section_size':
    case 'http_protocol_error':
      return `${key}.url leads to something other than a web server; for sloppy firmware see deploy/old-firmware.md`
    case 'tls_protocol_error':
      return `the TLS handshake fails: look at the TLS versions and ciphers that the device offers, or correct ${key}.url`
    case 'tls_certificate_error':
      return `set ${key}.tls.ca to the certificate of the device or its authority`
    default:
      return `the device closes the connection instead of answering: correct ${key}.url, or look at the log of the device`
  }
}
