import { type Addressed, publicOrigin } from '../http/browsers.ts'
import { type DeviceNames, isDeviceDomain, isDeviceOrigin } from '../http/device-names.ts'
import { isOwnAuthority } from '../http/overrides.ts'
import { splitAbsolute } from '../http/request-path.ts'

/**
 * A URL with an authority: the scheme, which the device may leave out, host and port, and the rest. User information is left out. Browsers
 * take backslashes and further slashes before the authority for its two slashes. In `Refresh` a quotation mark may end the authority.
 * Nothing matches where parsers disagree about the host, such as `http://one\\@other`.
 */
const WITH_AUTHORITY = /^(https?:)?[\\/]{2,}(?:[^\\/?#"']*@)?([^\\/?#"'@]*)(?=[/?#"']|$)(.*)$/i

/**
 * A URL in a request, as the device gets it: Postern's own origin, as the client sees it, becomes the device's. Any other URL stays as it
 * is, so a device that refuses requests of foreign pages still refuses them.
 *
 * @param schemes `same`: another scheme is another origin, so a page of cleartext stays a foreign one for a client that uses TLS. `either`:
 *   both schemes name the same resource of WebDAV, as for its admission (`http/overrides.ts`)
 */
export function deviceUrl(
  value: string,
  request: Addressed,
  device: string,
  schemes: 'same' | 'either',
): string {
  const url = splitAbsolute(value)
  if (url === undefined || !isOwnAuthority(url.authority, request)) return value
  const { scheme, authority, rest } = url
  const isSame = schemes === 'either' || isSameOrigin(`${scheme}://${authority}`, publicOrigin(request) ?? '')
  return isSame ? `${device}${rest}` : value
}

/**
 * A quoted text, the tag of a resource, or the beginning or end of a list of conditions. A text or tag without its end takes the rest of
 * the value.
 */
const TAG = /"[^"]*(?:"|$)|<([^>]*)(?:(>)|$)|[()]/g

/**
 * An `If` (RFC 4918 §10.4), as the device gets it. The tags of resources are URLs, which `deviceUrl` changes. A tag within a list of
 * conditions names a lock, and stays.
 */
export function deviceTags(value: string, request: Addressed, device: string): string {
  let listed = false
  return value.replace(TAG, (whole, url: string | undefined, end: string | undefined) => {
    if (whole === '(' || whole === ')') listed = whole === '('
    return listed || url === undefined || end === undefined
      ? whole
      : `<${deviceUrl(url, request, device, 'either')}>`
  })
}

/**
 * A URL of the device for the client: its own origin becomes the one that the client used. The device knows only its own address and
 * names, or the `Host` of the request, with its own scheme and sometimes its own port. Each of these bypasses the sidecar or leads nowhere.
 */
export function publicUrl(value: string, request: Addressed, device: DeviceNames): string {
  const found = WITH_AUTHORITY.exec(value)
  const used = publicOrigin(request)
  if (found === null || used === undefined) return value
  const [, scheme, authority = '', rest = ''] = found
  const origin = `${scheme ?? new URL(device.origin).protocol}//${authority}`
  if (!isDeviceOrigin(origin, asKnown(device, request))) return value
  // What the device left out stays out: the client adds the scheme that it used.
  return `${scheme === undefined ? used.replace(/^https?:/, '') : used}${rest}`
}

/**
 * A quoted parameter, or the URL of a link (RFC 8288 §3). A part without its end takes the rest of the value. Otherwise the search would
 * start again behind each `"` and `<`, which takes seconds for a value of 60 KB (ReDoS).
 */
const LINK = /"(?:[^"\\]|\\.?)*(?:"|$)|<([^>]*)(?:(>)|$)/g

export function publicLinks(value: string, request: Addressed, names: DeviceNames): string {
  return value.replace(LINK, (whole, url: string | undefined, end: string | undefined) =>
    url === undefined || end === undefined ? whole : `<${publicUrl(url, request, names)}>`,
  )
}

/**
 * `5; url=http://...`, with or without `url=` and a quotation mark. Two parts that match the same blanks would take quadratic time (ReDoS).
 */
const REFRESH = /^([\d.\s]*(?:[;,]\s*)?(?:url\s*=\s*)?["']?)((?:https?:)?[\\/]{2}.*)$/i

export function publicRefresh(value: string, request: Addressed, names: DeviceNames): string {
  return value.replace(REFRESH, (_, before: string, url: string) => before + publicUrl(url, request, names))
}

/**
 * A cookie of the device for the client. A `Domain` that is the device's becomes the host that the client used. If client and device speak
 * different schemes, `Secure` follows that of the client.
 */
export function publicCookie(value: string, request: Addressed, names: DeviceNames): string {
  const used = publicOrigin(request)
  const client = URL.parse(used ?? '')
  if (client === null) return value
  const known = asKnown(names, request)
  const moved = value.replace(/(;\s*domain\s*=\s*\.?)([^;\s]*)/gi, (whole, before: string, domain: string) =>
    isDeviceDomain(domain, known) ? `${before}${client.hostname}` : whole,
  )
  if (new URL(names.origin).protocol === client.protocol) return moved
  const plain = moved.replace(/;\s*secure\s*(?=;|$)/gi, '')
  return client.protocol === 'http:' ? plain : plain === moved ? `${moved}; Secure` : moved
}

/** The names of the device, with the `Host` of the request: without one in `device`, the device has got the client's own. */
function asKnown(device: DeviceNames, request: Addressed): DeviceNames {
  return device.host === undefined ? { ...device, host: request.classified.host } : device
}

function isSameOrigin(candidate: string, origin: string): boolean {
  const found = URL.parse(candidate)
  return found !== null && found.origin === URL.parse(origin)?.origin
}
