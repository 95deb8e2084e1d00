import { isAmbiguousPath, pathOf } from '../../http/request-path.ts'
import { SetupError } from '../../system/setup-error.ts'

const URL_FORM =
  'the URL must be the address of the server, such as https://device.example or https://192.0.2.7:8443'

/** The address of the server under test. Throws `SetupError` for anything but http or https, host and port. */
export function parseServerUrl(text: string): URL {
  // `URL.parse` is too lenient: it drops tabs, spaces and line ends, and takes https:host for https://host.
  const url = /^https?:\/\/[^\s/\\]/i.test(text) && !/[\s\\]/.test(text) ? URL.parse(text) : null
  if (url === null) throw new SetupError(URL_FORM)
  // The message must not repeat the URL: what stands before the @ may be a password.
  if (/^\w+:\/\/[^/?#]*@/.test(text)) {
    throw new SetupError(
      'the URL must not contain a user or password; the password belongs in the file of --password-file',
    )
  }
  if (/[?#]/.test(text)) {
    throw new SetupError(
      'the URL must have neither query nor fragment; a query belongs to --path, such as --path /status?x=1',
    )
  }
  if (url.pathname !== '/') {
    throw new SetupError(`the URL must end after the port; write ${url.origin} --path ${url.pathname}`)
  }
  if (url.port === '0') throw new SetupError('the URL must have a port from 1 to 65535')
  return url
}

/** Whether the host of a URL is the machine itself, so that nothing on the way can read the request. */
export function isLoopback({ hostname }: Pick<URL, 'hostname'>): boolean {
  return hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname) || /(?:^|\.)localhost$/.test(hostname)
}

/** RFC 3986 §3.3 and §3.4: a path and a query, with every other character encoded. */
const TARGET = /^\/(?:[\w.~!$&'()*+,;=:@/?-]|%[\dA-F]{2})*$/i

/**
 * A request target in the form in which it is sent. Throws `SetupError` for what is no path, for one that two servers may read
 * differently, and for the path of the token endpoint.
 */
export function parseTarget(flag: string, text: string): string {
  if (!text.startsWith('/')) throw new SetupError(`${flag}: must begin with /, such as /status`)
  if (text.includes('#')) throw new SetupError(`${flag}: must not have a fragment (#): no client sends it`)
  if (!TARGET.test(text)) {
    throw new SetupError(
      `${flag}: must be sent as it stands, so write other characters encoded, such as %20 for a space`,
    )
  }
  const path = pathOf(text)
  if (isAmbiguousPath(path)) {
    throw new SetupError(
      `${flag}: must not have ., .., // or an encoded delimiter: a server may read it as another path`,
    )
  }
  if (isSamePath(path, '/oauth/token'))
    throw new SetupError(`${flag}: must not be the token endpoint, which the run checks anyway`)
  return text
}

/** Whether two targets have one path: apart from a query, from encoded characters, and from a slash at the end. */
export function isSamePath(one: string, other: string): boolean {
  return resourceOf(one) === resourceOf(other)
}

function resourceOf(target: string): string {
  const decoded = pathOf(target).replaceAll(/%[2-7][\dA-F]/gi, (code) =>
    String.fromCharCode(Number.parseInt(code.slice(1), 16)),
  )
  return decoded.replace(/\/$/, '')
}
