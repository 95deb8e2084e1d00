import { STATUS_CODES } from 'node:http'

type Labels = readonly [endpoint: string, method: string, code: string]

/** Counts requests without making a key of their labels; the registry is handed the sums when it is scraped. */
export interface Tally {
  add(endpoint: string, method: string, status: number): void
  /** Hands over what has come since the last time. */
  drain(take: (labels: Labels, amount: number) => void): void
}

export function createTally(): Tally {
  const byEndpoint = new Map<string, Map<string, Map<number, number>>>()

  return {
    add(endpoint, method, status) {
      const byMethod = under(byEndpoint, endpoint)
      const byStatus = under(byMethod, methodLabel(method))
      byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
    },
    drain(take) {
      for (const [endpoint, byMethod] of byEndpoint)
        for (const [method, byStatus] of byMethod)
          for (const [status, amount] of byStatus) take([endpoint, method, codeLabel(status)], amount)
      byEndpoint.clear()
    },
  }
}

function under<K, V>(map: Map<string, Map<K, V>>, key: string): Map<K, V> {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = new Map<K, V>()
  map.set(key, made)
  return made
}

/** Methods are counted by name; whatever else a client makes up is `other`, so that the series stay few. */
function methodLabel(method: string): string {
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
function codeLabel(status: number): string {
  if (status === 0) return 'none'
  return STATUS_CODES[status] === undefined ? 'other' : String(status)
}
