/** Names whose words are not merely capitalized, as the IANA registry of field names or their own specification writes them. */
const EXCEPTIONS = `A-IM ALPN AMP-Cache-Transform C-PEP C-PEP-Info CDN-Loop CMCD-Object CMCD-Request CMCD-Session CMCD-Status
  CTA-Common-Access-Token Cal-Managed-ID CalDAV-Timezones Content-ID Content-MD5 DASL DAV DNT DPR DPoP Dictionary-ID
  Differential-ID ECT EDIINT-Features ETag GetProfile IM Include-Referred-Token-Binding-ID Last-Event-ID MIME-Version
  OData-EntityId OData-Isolation OData-MaxVersion OData-Version OSCORE OSLC-Core-Version P3P PEP PICS-Label ProfileObject RTT
  Repeatability-Client-ID Repeatability-Request-ID SLUG SOAPAction Sec-CH-DPR Sec-CH-Device-Memory Sec-CH-Prefers-Color-Scheme
  Sec-CH-Prefers-Reduced-Motion Sec-CH-UA Sec-CH-UA-Arch Sec-CH-UA-Bitness Sec-CH-UA-Form-Factors Sec-CH-UA-Full-Version
  Sec-CH-UA-Full-Version-List Sec-CH-UA-Mobile Sec-CH-UA-Model Sec-CH-UA-Platform Sec-CH-UA-Platform-Version Sec-CH-UA-WoW64
  Sec-CH-Viewport-Height Sec-CH-Viewport-Width Sec-CH-Width Sec-GPC SetProfile Status-URI TCN TTL URI WWW-Authenticate
  X-CSRF-Token X-DNS-Prefetch-Control X-UA-Compatible X-XSS-Protection`

/** By the name in lower case. It grows by the names that clients send, up to this many, none longer than this. */
const names = new Map(EXCEPTIONS.split(/\s+/).map((name) => [name.toLowerCase(), name]))
const MOST_NAMES = 1000
const LONGEST_NAME = 64

/**
 * The name of a field in the letter case in which HTTP/1 programs write it: HTTP/2 has lower case only (RFC 9113 §8.2.1), and old
 * firmware compares names byte by byte.
 *
 * @param lower in lower case
 */
export function canonicalName(lower: string): string {
  const known = names.get(lower)
  if (known !== undefined) return known
  const name = lower.replace(/(?<![^-])[a-z]/g, (letter) => letter.toUpperCase())
  if (lower.length <= LONGEST_NAME && names.size < MOST_NAMES) names.set(lower, name)
  return name
}
