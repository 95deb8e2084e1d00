import { STATUS_CODES } from 'node:http'

/** Methods are counted by name; whatever else a client makes up is `other`, so that the series stay few. */
export function methodLabel(method: string): string {
  switch (method) {
    case 'GET':
    case 'HEAD':
    case 'POST':
    case 'PUT':
    case 'PATCH':
    case 'DELETE':
    case 'OPTIONS':
      return method
    default:
      return 'other'
  }
}

/** A registered status by number, a made-up one of the device as `other`, none at all (the client left) as `none`. */
export function codeLabel(status: number): string {
  if (status === 0) return 'none'
  return STATUS_CODES[status] === undefined ? 'other' : String(status)
}
