//! The messages of an object header, each parsed independently.

pub(crate) mod attribute;
pub(crate) mod datatype;
pub(crate) mod external;
pub(crate) mod fill;
pub(crate) mod layout;
pub(crate) mod link;
pub(crate) mod pipeline;
pub(crate) mod space;
