import { STATUS_CODES } from 'node:http'

/** Methods that are counted by name; whatever else a client makes up is `other`, so that the series stay few. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
])

export function methodLabel(method: string): string {
  return KNOWN_METHODS.has(method) ? method : 'other'
}

/** A registered status by number, a made-up one of the device as `other`, none at all (the client left) as `none`. */
export function codeLabel(status: number): string {
  if (status === 0) return 'none'
  return STATUS_CODES[status] === undefined ? 'other' : String(status)
}
