//! Parses points in time.

use hyperslab::{Calendar, Error, Result};

/// `T` or `FROM:TO` as milliseconds since 1970. `T` alone means everything up to then.
pub(crate) fn window(text: &str) -> Result<(u64, u64)> {
    if let Some(at) = moment(text) {
        return Ok((0, at));
    }
    // Times contain colons themselves, so try each colon as the separator.
    let split = text.match_indices(':').find_map(|(at, _)| {
        let (from, to) = (&text[..at], &text[at + 1..]);
        let from = if from.is_empty() { Some(0) } else { moment(from) };
        let to = if to.is_empty() { Some(u64::MAX) } else { moment(to) };
        from.zip(to)
    });
    split.ok_or_else(|| {
        Error::invalid(format!(
            "--at {text}: expected T or FROM:TO, in milliseconds or as 2020-01-31T12:00:00Z"
        ))
    })
}

/// Milliseconds, or an RFC 3339 date with or without a time.
fn moment(text: &str) -> Option<u64> {
    if let Ok(milliseconds) = text.parse() {
        return Some(milliseconds);
    }
    let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00:00Z"));
    let mut parts = date.split('-');
    let mut part = |length: usize| parts.next().filter(|part| part.len() == length)?.parse::<u32>().ok();
    let date = (part(4)?, part(2)?, part(2)?);
    let days = Calendar::ProlepticGregorian.day(date.0.into(), date.1.into(), date.2.into())?;
    let days = i64::try_from(days).ok()?;
    if parts.next().is_some() {
        return None;
    }
    u64::try_from(days * 86_400_000 + time_of_day(time)?).ok()
}

/// Milliseconds of a time of day, minus its offset from UTC.
fn time_of_day(text: &str) -> Option<i64> {
    let zone = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, zone) = text.split_at(zone);
    let parts: Vec<&str> = clock.split(':').collect();
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] => (*hour, *minute, "0"),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return None,
    };
    let number = |text: &str, below: i64| text.parse().ok().filter(|n| (0..below).contains(n));
    let second = second.parse::<f64>().ok().filter(|second| (0.0..61.0).contains(second))?;
    let offset = match zone {
        "" | "Z" | "z" => 0,
        signed => {
            let (hours, minutes) = signed[1..].split_once(':')?;
            let minutes = number(hours, 24)? * 60 + number(minutes, 60)?;
            if signed.starts_with('-') { -minutes } else { minutes }
        }
    };
    Some((number(hour, 24)? * 60 + number(minute, 60)? - offset) * 60_000 + (second * 1000.0).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        assert_eq!(window("1500").unwrap(), (0, 1500));
        assert_eq!(window("1000:1500").unwrap(), (1000, 1500));
        assert_eq!(window("1970-01-02").unwrap(), (0, 86_400_000));
        assert_eq!(window("2020-01-31T12:00:00.5Z").unwrap(), (0, 1_580_472_000_500));
        assert_eq!(window("2020-01-31T14:00:00+02:00").unwrap(), (0, 1_580_472_000_000));
        assert_eq!(
            window("2020-01-31T12:00:00Z:2020-01-31T13:00:00Z").unwrap(),
            (1_580_472_000_000, 1_580_475_600_000)
        );
        for wrong in ["", "yesterday", "2020-02-30", "12:61:00", "2020-01-31T25:00:00Z"] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
