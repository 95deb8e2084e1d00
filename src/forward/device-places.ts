/** A place at the device. It is new until a request in it has been answered. */
export interface DevicePlace {
  busy: boolean
  /** The head of the response to its present request has come. */
  answered: boolean
  worked: boolean
  /** When the last byte of its request was sent (ms), the path, and how many responses from the device had come by then. */
  sentAt: number
  path: string
  answers: number
  /** How many requests had a place at that time, this one included. */
  inside: number
  /** The most requests that had a place at once between that time and the response. */
  peak: number
}

/** The places at the device that requests have had so far. */
export class DevicePlaces {
  readonly #all: DevicePlace[] = []
  /** How many places have worked. */
  worked = 0

  /**
   * Takes the lowest free place for a request whose last byte was sent at `now`. So few requests get places for which the device has no
   * room.
   */
  take(path: string, inside: number, answers: number, now: number): DevicePlace {
    const request = { busy: true, answered: false, sentAt: now, path, answers, inside, peak: inside }
    const free = this.#all.find(({ busy }) => !busy)
    if (free !== undefined) return Object.assign(free, request)
    const place = { ...request, worked: false }
    this.#all.push(place)
    return place
  }

  /** So many requests have places now: raises the peak of each. */
  note(inside: number): void {
    for (const place of this.#all) if (place.busy) place.peak = Math.max(place.peak, inside)
  }

  /** The places whose requests wait for their responses. */
  get waiting(): readonly DevicePlace[] {
    return this.#all.filter(({ busy, answered }) => busy && !answered)
  }

  /** A request in this new place was answered. */
  works(place: DevicePlace): void {
    place.worked = true
    this.worked += 1
  }

  /** Counts the first `worked` places as worked, and the others as new. */
  regard(worked: number): void {
    this.worked = Math.min(worked, this.#all.length)
    for (const [index, place] of this.#all.entries()) place.worked = index < worked
  }
}
