/** Signs of one outage of the device, at several sidecars, are at most so far apart (ms). */
export const SAME_OUTAGE = 5_000
